package slacksim

func (s *Sim) authTest(params) reply {
	return okReply(map[string]any{
		"url": s.URL() + "/", "team": s.opts.TeamName, "user": s.opts.BotName, "team_id": s.opts.TeamID,
		"user_id": s.opts.BotUserID, "bot_id": s.opts.BotID, "is_enterprise_install": false,
	})
}

// wireUser renders a user.
func (s *Sim) wireUser(u User, bot bool) map[string]any {
	return map[string]any{
		"id": u.ID, "team_id": u.TeamID, "name": u.Name, "real_name": u.RealName, "deleted": u.Deleted,
		"is_bot": bot, "is_app_user": false, "is_admin": false, "is_owner": false,
		"is_restricted": u.IsGuest, "is_ultra_restricted": false, "is_stranger": u.TeamID != s.opts.TeamID,
		"tz": "Etc/UTC", "tz_label": "Coordinated Universal Time", "tz_offset": 0, "updated": 1700000000,
		"profile": map[string]any{
			"real_name": u.RealName, "display_name": u.Name, "email": u.Email, "team": u.TeamID,
		},
	}
}

func (s *Sim) botUser() User {
	return User{ID: s.opts.BotUserID, Name: s.opts.BotName, RealName: s.opts.BotName, TeamID: s.opts.TeamID}
}

func (s *Sim) usersInfo(p params) reply {
	if p["user"] == s.opts.BotUserID {
		return okReply(map[string]any{"user": s.wireUser(s.botUser(), true)})
	}
	u, ok := s.state.user(p["user"])
	if !ok {
		return failReply("user_not_found")
	}
	return okReply(map[string]any{"user": s.wireUser(u, false)})
}

func (s *Sim) usersList(p params) reply {
	members := []map[string]any{s.wireUser(s.botUser(), true)}
	for _, u := range s.state.listUsers() {
		members = append(members, s.wireUser(u, false))
	}
	members, next, ok := page(members, p, 200, 1000)
	if !ok {
		return failReply("invalid_cursor")
	}
	return okReply(map[string]any{"members": members, "response_metadata": map[string]any{"next_cursor": next}})
}
