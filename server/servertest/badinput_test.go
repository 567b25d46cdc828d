package servertest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"holdfast/server/servertest"
)

// TestBadBodiesAreRefusedByNameAndWriteNothing sends each operation that takes a
// body what does not fit its description.
func TestBadBodiesAreRefusedByNameAndWriteNothing(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	before := state(s)
	for _, o := range operations(t) {
		if !o.body {
			continue
		}
		c := caller{token: s.APIToken("alice")}
		switch o.id {
		case "receiveAlertmanager":
			c.token = s.Tokens.Hook
		case "ackPolicy":
			c.token = s.Tokens.Gateway
		case "createSession":
			c.token = ""
		}
		send := func(body any) servertest.Answer {
			r := o.probe(c)
			if o.id == "planAction" || o.id == "runAction" {
				r.Path = strings.Replace(r.Path, "no_such_thing", "trip_breaker", 1)
			}
			r.Body = body
			return s.Do(r)
		}
		refused := func(what string, a servertest.Answer, paths ...string) {
			t.Helper()
			require.GreaterOrEqual(t, a.Status, 400, "%s, %s: %s", o.id, what, a.Body)
			require.Less(t, a.Status, 500, "%s, %s: %s", o.id, what, a.Body)
			p, ok := a.Problem()
			require.True(t, ok, "%s, %s: no problem document: %s", o.id, what, a.Body)
			for _, path := range paths {
				var named []string
				for _, e := range p.Errors {
					named = append(named, e.Path)
				}
				require.Contains(t, named, path, "%s, %s: %s", o.id, what, a.Body)
			}
		}
		refused("no JSON", send(`{"`))
		refused("not an object", send(`[]`))
		refused("text that is no UTF-8", send("{\"a\":\"\xff\"}"))
		limit := otherCap
		if o.id == "receiveAlertmanager" {
			limit = hookCap
		}
		tooLarge := send(`{"padding":"` + strings.Repeat("x", limit) + `"}`)
		require.Equal(t, http.StatusRequestEntityTooLarge, tooLarge.Status, "%s: %s", o.id, tooLarge.Body)

		schema := o.spec.RequestBody.Value.Content.Get("application/json").Schema.Value
		if schema.AdditionalProperties.Has == nil || *schema.AdditionalProperties.Has {
			continue // its own decoder names what is wrong: tested with it
		}
		refused("an unknown field", send(`{"no_such_field":1}`), "no_such_field")
		for name, property := range schema.Properties {
			refused("wrong type of "+name, send(`{"`+name+`":`+wrong(property.Value)+`}`), name)
		}
		for _, name := range schema.Required {
			refused("without "+name, send(`{}`), name)
		}
	}
	require.Equal(t, before, state(s), "a refused request wrote something")
}

// wrong is a JSON value that is not of the schema's type.
func wrong(p *openapi3.Schema) string {
	if p.Type.Is("string") {
		return `{"not":"text"}`
	}
	return `"neither number nor list"`
}

// state is all that a refused request must leave as it was.
func state(s *servertest.System) map[string]string {
	all := map[string]string{}
	for _, path := range []string{"/api/v1/changes", "/api/v1/freezes", "/api/v1/alerts", "/api/v1/incidents", "/api/v1/action-runs", "/api/v1/runbook-runs", "/api/v1/people", "/api/v1/policy/revisions", "/api/v1/gateways"} {
		var raw json.RawMessage
		s.Get(path, &raw)
		all[path] = string(raw)
	}
	return all
}

func TestWrongZonesAndTimesAreRefusedByName(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	for _, start := range []string{"2026-03-29T02:30:00", "2026-03-29 02:30", "tomorrow", "2026-13-01T00:00:00Z", "2026-03-29T02:30:00+25:00"} {
		a := s.Do(servertest.Request{
			Method: http.MethodPost, Path: "/api/v1/changes/claim", Token: s.Tokens.CI,
			Body: map[string]any{"service": "checkout", "environment": "prod", "run_id": "r", "start": start},
		})
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", start, a.Body)
		require.Contains(t, a.Body, "start", start)
	}
	for _, duration := range []string{"30", "-5m", "200h", "half an hour"} {
		a := s.Do(servertest.Request{
			Method: http.MethodPost, Path: "/api/v1/changes/claim", Token: s.Tokens.CI,
			Body: map[string]any{"service": "checkout", "environment": "prod", "run_id": "r", "duration": duration},
		})
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", duration, a.Body)
		require.Contains(t, a.Body, "duration", duration)
	}
	var page struct{ Items []json.RawMessage }
	s.Get("/api/v1/changes", &page)
	require.Empty(t, page.Items)
}
