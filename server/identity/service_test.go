package identity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/audit"
	"holdfast/server/identity"
	"holdfast/server/internal/store/storetest"
)

var ten = time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)

type world struct {
	*identity.Service
	db    *storetest.DB
	admin context.Context
	log   *bytes.Buffer
}

func each(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		db.Freeze(t, ten)
		var log bytes.Buffer
		w := &world{
			Service: identity.New(identity.Options{
				Store: db.Identity(), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}),
			db: db, log: &log,
		}
		root, err := w.SeedPerson(t.Context(), "root", "Root", identity.RoleAdmin)
		require.NoError(t, err)
		w.admin = as(t.Context(), root)
		fn(t, w)
	})
}

func as(ctx context.Context, p identity.Person) context.Context {
	return identity.WithPrincipal(ctx, identity.Of(p, identity.ChannelConsole))
}

func (w *world) person(t *testing.T, handle string, role identity.Role) identity.Person {
	t.Helper()
	p, err := w.CreatePerson(w.admin, handle, handle, role)
	require.NoError(t, err)
	return p
}

// audited gives the reasons of the audit rows of a verb, newest first.
func (w *world) audited(t *testing.T, verb string, decision audit.Decision) []string {
	t.Helper()
	_, err := w.db.ChainPending(t.Context(), 1000)
	require.NoError(t, err)
	rows, err := w.db.AuditEntries(t.Context(), 0, 200)
	require.NoError(t, err)
	var reasons []string
	for _, r := range rows {
		if r.Verb == verb && r.Decision == decision {
			reasons = append(reasons, r.Reason)
		}
	}
	return reasons
}

func TestTokenLife(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		alice := w.person(t, "alice", identity.RoleResponder)
		plain, token, err := w.CreateToken(w.admin, identity.TokenRequest{
			Kind: identity.TokenCI, Name: "deploys", Scopes: []string{"service:api"}, OwnerID: alice.ID, TTL: time.Hour,
		})
		require.NoError(t, err)
		p, err := w.AuthenticateToken(t.Context(), plain)
		require.NoError(t, err)
		require.Equal(t, identity.Principal{
			Kind: identity.PrincipalToken, Name: "deploys", TokenID: token.ID, TokenKind: identity.TokenCI,
			Scopes: []string{"service:api"}, OwnerID: alice.ID, Channel: identity.ChannelAPI,
		}, p)
		require.Empty(t, p.Role, "a pipeline has no person's rights")

		list, err := w.Tokens(w.admin)
		require.NoError(t, err)
		require.Equal(t, ten, list[0].LastUsedAt.UTC())
		require.Empty(t, list[0].Hash)

		refused := func(reason string, plain string) {
			t.Helper()
			_, err := w.AuthenticateToken(t.Context(), plain)
			require.Equal(t, identity.ErrUnauthenticated, err, "nothing tells why")
			require.Equal(t, reason, w.audited(t, "token.authenticate", audit.Denied)[0])
			w.db.Advance(t, time.Minute)
		}
		refused("wrong secret", plain[:len(plain)-1]+flip(plain[len(plain)-1]))
		refused("malformed token", "hf_nonsense")
		refused("unknown token", strings.Replace(plain, token.ID, "abcdefghijklmnop", 1))
		refused("wrong secret", strings.Replace(plain, "_ci_", "_hook_", 1))

		disabled, enabled := true, false
		_, err = w.UpdatePerson(w.admin, alice.ID, identity.PersonEdit{Disabled: &disabled})
		require.NoError(t, err)
		refused("owner is disabled", plain)
		_, err = w.UpdatePerson(w.admin, alice.ID, identity.PersonEdit{Disabled: &enabled})
		require.NoError(t, err)
		_, err = w.AuthenticateToken(t.Context(), plain)
		require.NoError(t, err)
		w.db.Advance(t, time.Hour)
		refused("expired", plain)
	})
}

func flip(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

func TestRevokedTokenIsRefusedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		alice, bob := w.person(t, "alice", identity.RoleViewer), w.person(t, "bob", identity.RoleApprover)
		plain, token, err := w.CreateToken(as(t.Context(), alice), identity.TokenRequest{Kind: identity.TokenAPI, Name: "mine"})
		require.NoError(t, err, "everybody makes api tokens for themselves")
		p, err := w.AuthenticateToken(t.Context(), plain)
		require.NoError(t, err)
		require.Equal(t, alice.ID, p.PersonID)
		require.Equal(t, identity.RoleViewer, p.Role)

		_, _, err = w.CreateToken(as(t.Context(), alice), identity.TokenRequest{Kind: identity.TokenCI, Name: "x"})
		require.ErrorIs(t, err, identity.ErrForbidden)
		_, _, err = w.CreateToken(as(t.Context(), bob), identity.TokenRequest{Kind: identity.TokenAPI, Name: "x", OwnerID: alice.ID})
		require.ErrorIs(t, err, identity.ErrForbidden)
		require.Len(t, w.audited(t, "token.create", audit.Denied), 2)
		list, err := w.Tokens(as(t.Context(), bob))
		require.NoError(t, err)
		require.Empty(t, list)

		require.ErrorIs(t, w.RevokeToken(as(t.Context(), bob), token.ID), identity.ErrForbidden)
		require.NoError(t, w.RevokeToken(as(t.Context(), alice), token.ID))
		require.NoError(t, w.RevokeToken(w.admin, token.ID), "twice is no error")
		require.Len(t, w.audited(t, "token.revoke", audit.Allowed), 1)
		require.Len(t, w.audited(t, "token.revoke", audit.Denied), 1)
		_, err = w.AuthenticateToken(t.Context(), plain)
		require.ErrorIs(t, err, identity.ErrUnauthenticated)
		require.ErrorIs(t, w.RevokeToken(w.admin, "nothing"), identity.ErrNotFound)
	})
}

func TestTokenRequestsNameWhatIsWrong(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, tt := range []struct {
			r    identity.TokenRequest
			want string
		}{
			{identity.TokenRequest{Kind: "root", Name: "x"}, `kind "root"`},
			{identity.TokenRequest{Kind: identity.TokenCI}, "name must have"},
			{identity.TokenRequest{Kind: identity.TokenCI, Name: "x", TTL: -1}, "cannot be negative"},
			{identity.TokenRequest{Kind: identity.TokenCI, Name: "x", Scopes: []string{"service:a", "api"}}, "scopes[1] must read dimension:value"},
			{identity.TokenRequest{Kind: identity.TokenCI, Name: "x", Scopes: []string{"servce:a"}}, `ci tokens are narrowed by service or environment, not by "servce"`},
			{identity.TokenRequest{Kind: identity.TokenHook, Name: "x", Scopes: []string{"service:a"}}, "narrowed by source"},
			{identity.TokenRequest{Kind: identity.TokenAPI, Name: "x", OwnerID: "me", Scopes: []string{"service:a"}}, "take no scopes"},
		} {
			_, _, err := w.CreateToken(w.admin, tt.r)
			require.ErrorIs(t, err, identity.ErrInvalid)
			require.ErrorContains(t, err, tt.want)
		}
		_, _, err := w.CreateToken(w.admin, identity.TokenRequest{Kind: identity.TokenCI, Name: "x", OwnerID: "nobody"})
		require.ErrorIs(t, err, identity.ErrNotFound)
	})
}

func TestSeedToken(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		plain, token := identity.NewToken(identity.TokenHook, "", nil, "")
		seed := func(kind identity.TokenKind, plain string) error {
			return w.SeedToken(t.Context(), kind, "alertmanager", plain, []string{"source:alertmanager"})
		}
		require.NoError(t, seed(identity.TokenHook, plain))
		require.NoError(t, seed(identity.TokenHook, plain), "again changes nothing")
		p, err := w.AuthenticateToken(t.Context(), plain)
		require.NoError(t, err)
		require.Equal(t, "alertmanager", p.Name)

		require.ErrorIs(t, seed(identity.TokenCI, plain), identity.ErrInvalid)
		require.ErrorIs(t, seed(identity.TokenHook, "hf_hook_x"), identity.ErrInvalid)
		other, _ := identity.NewToken(identity.TokenHook, "", nil, "")
		err = seed(identity.TokenHook, strings.Join([]string{"hf", "hook", token.ID, strings.Split(other, "_")[3]}, "_"))
		require.ErrorIs(t, err, identity.ErrDuplicate)
		require.NoError(t, w.RevokeToken(w.admin, token.ID))
		require.NoError(t, seed(identity.TokenHook, plain))
		_, err = w.AuthenticateToken(t.Context(), plain)
		require.ErrorIs(t, err, identity.ErrUnauthenticated, "a restart does not bring a revoked token back")
	})
}

func TestLoginLinkOpensOneSession(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		alice := w.person(t, "alice", identity.RoleResponder)
		_, err := w.IssueLoginLink(as(t.Context(), alice), alice.ID, time.Hour)
		require.ErrorIs(t, err, identity.ErrForbidden)
		_, err = w.IssueLoginLink(w.admin, alice.ID, 0)
		require.ErrorIs(t, err, identity.ErrInvalid)
		code, err := w.IssueLoginLink(identity.WithPrincipal(t.Context(), identity.System()), alice.ID, time.Hour)
		require.NoError(t, err)

		const clicks = 8
		cookies, errs := make([]string, clicks), make([]error, clicks)
		var done sync.WaitGroup
		ctx := t.Context()
		for i := range clicks {
			done.Go(func() { cookies[i], _, errs[i] = w.ConsumeLogin(ctx, code) })
		}
		done.Wait()
		cookie := ""
		for i, err := range errs {
			if err == nil {
				require.Empty(t, cookie, "a code opens one session")
				cookie = cookies[i]
				continue
			}
			require.ErrorIs(t, err, identity.ErrLinkUsed)
		}
		require.NotEmpty(t, cookie)

		p, err := w.AuthenticateSession(t.Context(), cookie)
		require.NoError(t, err)
		require.Equal(t, identity.Of(alice, identity.ChannelConsole), p)
		for _, junk := range []string{"", cookie + "x", strings.Repeat("x", 100_000)} {
			_, err = w.AuthenticateSession(t.Context(), junk)
			require.Equal(t, identity.ErrUnauthenticated, err)
		}

		admin := identity.RoleAdmin
		_, err = w.UpdatePerson(w.admin, alice.ID, identity.PersonEdit{Role: &admin})
		require.NoError(t, err)
		p, err = w.AuthenticateSession(t.Context(), cookie)
		require.NoError(t, err)
		require.Equal(t, identity.RoleAdmin, p.Role, "the role is the one of now")

		disabled := true
		_, err = w.UpdatePerson(w.admin, alice.ID, identity.PersonEdit{Disabled: &disabled})
		require.NoError(t, err)
		_, err = w.AuthenticateSession(t.Context(), cookie)
		require.Equal(t, identity.ErrUnauthenticated, err)
		require.NotEmpty(t, w.audited(t, "login", audit.Denied))
	})
}

func TestSessionEnds(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		alice := w.person(t, "alice", identity.RoleViewer)
		login := func() string {
			code, err := w.IssueLoginLink(w.admin, alice.ID, time.Hour)
			require.NoError(t, err)
			cookie, person, err := w.ConsumeLogin(t.Context(), code)
			require.NoError(t, err)
			require.Equal(t, alice.ID, person.ID)
			return cookie
		}
		first, second := login(), login()
		require.NoError(t, w.Logout(t.Context(), first))
		require.NoError(t, w.Logout(t.Context(), first))
		require.NoError(t, w.Logout(t.Context(), "nothing"))
		require.Len(t, w.audited(t, "logout", audit.Allowed), 1)
		_, err := w.AuthenticateSession(t.Context(), first)
		require.ErrorIs(t, err, identity.ErrUnauthenticated)
		_, err = w.AuthenticateSession(t.Context(), second)
		require.NoError(t, err)
		w.db.Advance(t, identity.DefaultSessionTTL)
		_, err = w.AuthenticateSession(t.Context(), second)
		require.ErrorIs(t, err, identity.ErrUnauthenticated)

		code, err := w.IssueLoginLink(w.admin, alice.ID, time.Hour)
		require.NoError(t, err)
		w.db.Advance(t, time.Hour)
		_, _, err = w.ConsumeLogin(t.Context(), code)
		require.ErrorIs(t, err, identity.ErrLinkUsed, "an old code opens nothing")
	})
}

func (w *world) slackCode(t *testing.T, user string) string {
	t.Helper()
	code, hash := identity.NewCode()
	require.NoError(t, w.db.Identity().InTx(t.Context(), func(tx identity.Tx) error {
		return tx.InsertLink(identity.Link{
			Hash: hash, Purpose: identity.LinkSlack, SlackTeam: "T1", SlackUser: user, ExpiresAt: tx.Now().Add(time.Hour),
		})
	}))
	return code
}

func TestSlackLink(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		alice, bob := w.person(t, "alice", identity.RoleResponder), w.person(t, "bob", identity.RoleApprover)
		_, err := w.PersonForSlack(t.Context(), "T1", "U1")
		require.ErrorIs(t, err, identity.ErrNotFound)
		_, err = w.PersonForSlack(t.Context(), "", "")
		require.ErrorIs(t, err, identity.ErrNotFound, "people without a Slack user are not one")

		code := w.slackCode(t, "U1")
		_, err = w.ConsumeSlackLink(t.Context(), code)
		require.ErrorIs(t, err, identity.ErrUnauthenticated)
		_, _, err = w.ConsumeLogin(t.Context(), code)
		require.ErrorIs(t, err, identity.ErrLinkUsed, "a Slack link is no login")
		got, err := w.ConsumeSlackLink(as(t.Context(), alice), code)
		require.NoError(t, err)
		require.Equal(t, "U1", got.SlackUser)
		_, err = w.ConsumeSlackLink(as(t.Context(), bob), code)
		require.ErrorIs(t, err, identity.ErrLinkUsed)
		_, err = w.ConsumeSlackLink(as(t.Context(), bob), w.slackCode(t, "U1"))
		require.ErrorIs(t, err, identity.ErrDuplicate)
		require.ErrorContains(t, err, "linked to alice")
		_, err = w.ConsumeSlackLink(as(t.Context(), alice), w.slackCode(t, "U2"))
		require.ErrorIs(t, err, identity.ErrDuplicate, "another Slack user could act in her name")
		require.ErrorContains(t, err, "unlink")

		found, err := w.PersonForSlack(t.Context(), "T1", "U1")
		require.NoError(t, err)
		require.Equal(t, alice.ID, found.ID)
		_, err = w.PersonForSlack(t.Context(), "T2", "U1")
		require.ErrorIs(t, err, identity.ErrNotFound)
		disabled := true
		_, err = w.UpdatePerson(w.admin, alice.ID, identity.PersonEdit{Disabled: &disabled})
		require.NoError(t, err)
		_, err = w.PersonForSlack(t.Context(), "T1", "U1")
		require.ErrorIs(t, err, identity.ErrForbidden)
		require.Len(t, w.audited(t, "slack.link", audit.Allowed), 1)
		require.Len(t, w.audited(t, "slack.link", audit.Denied), 4)
	})
}

func TestPeople(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		alice := w.person(t, " Alice ", identity.RoleApprover)
		require.Equal(t, "alice", alice.Handle)
		_, err := w.CreatePerson(w.admin, "ALICE", "x", identity.RoleViewer)
		require.ErrorIs(t, err, identity.ErrDuplicate)
		for _, bad := range []struct{ handle, name, role string }{{"a b", "x", "viewer"}, {"", "x", "viewer"}, {"x", " ", "viewer"}, {"x", "x", "root"}} {
			_, err := w.CreatePerson(w.admin, bad.handle, bad.name, identity.Role(bad.role))
			require.ErrorIs(t, err, identity.ErrInvalid)
		}
		_, err = w.CreatePerson(as(t.Context(), alice), "x", "x", identity.RoleAdmin)
		require.ErrorIs(t, err, identity.ErrForbidden)
		_, err = w.UpdatePerson(as(t.Context(), alice), alice.ID, identity.PersonEdit{})
		require.ErrorIs(t, err, identity.ErrForbidden)
		require.Len(t, w.audited(t, "person.create", audit.Denied), 1)

		again, err := w.SeedPerson(t.Context(), "alice", "Other", identity.RoleAdmin)
		require.NoError(t, err)
		require.Equal(t, alice.ID, again.ID)
		require.Equal(t, identity.RoleApprover, again.Role, "seeding does not undo what an admin set")
		found, err := w.PersonByHandle(t.Context(), "Alice")
		require.NoError(t, err)
		require.Equal(t, alice.ID, found.ID)
		people, err := w.People(as(t.Context(), alice))
		require.NoError(t, err)
		require.Len(t, people, 2)
		_, err = w.Person(w.admin, "nobody")
		require.ErrorIs(t, err, identity.ErrNotFound)
	})
}

func TestLastAdminStays(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		second := w.person(t, "second", identity.RoleAdmin)
		people, err := w.People(w.admin)
		require.NoError(t, err)
		viewer := identity.RoleViewer
		errs := make([]error, len(people))
		var done sync.WaitGroup
		for i, p := range people {
			done.Go(func() { _, errs[i] = w.UpdatePerson(w.admin, p.ID, identity.PersonEdit{Role: &viewer}) })
		}
		done.Wait()
		require.ErrorIs(t, errors.Join(errs...), identity.ErrLastAdmin)
		require.True(t, errs[0] == nil || errs[1] == nil, "%v", errs)
		require.Len(t, w.audited(t, "person.update", audit.Denied), 1)
		require.NotEmpty(t, second.ID)
	})
}

func TestSecretsReachNeitherAuditNorLog(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		plain, _, err := w.CreateToken(w.admin, identity.TokenRequest{Kind: identity.TokenHook, Name: "x"})
		require.NoError(t, err)
		secret := strings.Split(plain, "_")[3]
		broken := plain[:len(plain)-1] + flip(plain[len(plain)-1])
		_, err = w.AuthenticateToken(t.Context(), broken)
		require.Error(t, err)
		require.NotContains(t, err.Error(), secret[:20])
		_, err = w.db.ChainPending(t.Context(), 1000)
		require.NoError(t, err)
		rows, err := w.db.AuditEntries(t.Context(), 0, 200)
		require.NoError(t, err)
		require.NotEmpty(t, rows)
		require.NotContains(t, fmt.Sprint(rows), secret[:20])
		require.NotContains(t, w.log.String(), secret[:20])
	})
}
