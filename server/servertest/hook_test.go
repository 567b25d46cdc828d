package servertest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/server/identity"
	"holdfast/server/servertest"
)

const (
	hook     = "/hooks/alertmanager"
	hookCap  = 32 << 20
	otherCap = 1 << 20
)

func TestR28_TheHookTakesItsOwnTokenInTheHeaderAlone(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	revoked := s.Token(identity.TokenHook, "", 0, "source:alertmanager")
	s.Revoke(revoked)
	wrongSecret := s.Tokens.Hook[:len(s.Tokens.Hook)-4] + "0000"
	cases := []struct{ name, path, token string }{
		{"none", hook, ""},
		{"garbage", hook, "not-a-token"},
		{"right id, wrong secret", hook, wrongSecret},
		{"another source's", hook, s.Tokens.OtherHook},
		{"a pipeline's", hook, s.Tokens.CI},
		{"a gateway's", hook, s.Tokens.Gateway},
		{"revoked", hook, revoked},
		{"right, but in the query", hook + "?token=" + s.Tokens.Hook, ""},
		{"right, but in another query", hook + "?access_token=" + s.Tokens.Hook, ""},
	}
	for _, c := range cases {
		a := s.Do(servertest.Request{Method: http.MethodPost, Path: c.path, Token: c.token, Body: servertest.Notification(servertest.Alert{})})
		require.Equal(t, http.StatusUnauthorized, a.Status, "%s: %s", c.name, a.Body)
		_, ok := a.Problem()
		require.True(t, ok, "%s: no problem document: %s", c.name, a.Body)
	}
	basic := s.Do(servertest.Request{
		Method: http.MethodPost, Path: hook, Body: servertest.Notification(servertest.Alert{}), Header: http.Header{"Authorization": {"Basic " + s.Tokens.Hook}},
	})
	require.Equal(t, http.StatusUnauthorized, basic.Status)
	requireNoIncident(t, s)
	require.NotContains(t, s.Logs.String(), s.Tokens.Hook, "a token in the log")
	require.Equal(t, 1, s.PostAlert(servertest.Alert{}).New)
}

func TestR28_TheHookTakesThirtyTwoMebibytesAndNoMore(t *testing.T) { //nolint:tparallel // 32 MiB bodies one after the other
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	post := func(body io.Reader, encoding string) (servertest.Answer, error) {
		h := http.Header{}
		if encoding != "" {
			h.Set("Content-Encoding", encoding)
		}
		return s.Try(servertest.Request{Method: http.MethodPost, Path: hook, Token: s.Tokens.Hook, Body: body, Header: h})
	}
	padded := func(size int) []byte {
		n := servertest.Notification(servertest.Alert{Annotations: map[string]string{"summary": "big"}})
		n["padding"] = ""
		raw, err := json.Marshal(n)
		require.NoError(t, err)
		// White space between values is the cheapest way to be big and right.
		return append(raw, bytes.Repeat([]byte(" "), size-len(raw))...)
	}
	t.Run("declared", func(t *testing.T) {
		requireTooLarge(t, s, func() (servertest.Answer, error) { return post(bytes.NewReader(padded(hookCap+1)), "") })
	})
	t.Run("without a length", func(t *testing.T) {
		// The reader ends only when it is refused: not more than the cap and what
		// lies in buffers may be taken.
		var endless *countingSpaces
		requireTooLarge(t, s, func() (servertest.Answer, error) {
			endless = &countingSpaces{}
			return post(endless, "")
		})
		require.LessOrEqual(t, endless.read.Load(), int64(hookCap+(8<<20)), "read on after the cap")
	})
	t.Run("gzip bomb", func(t *testing.T) {
		var bomb bytes.Buffer
		zw, err := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
		require.NoError(t, err)
		_, err = io.Copy(zw, io.LimitReader(&countingSpaces{}, 2*hookCap))
		require.NoError(t, err)
		require.NoError(t, zw.Close())
		require.Less(t, bomb.Len(), 1<<20)
		requireTooLarge(t, s, func() (servertest.Answer, error) { return post(bytes.NewReader(bomb.Bytes()), "gzip") })
	})
	t.Run("gzip that is none", func(t *testing.T) {
		a, err := post(strings.NewReader("{}"), "gzip")
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, a.Status, a.Body)
	})
	t.Run("an encoding nobody knows", func(t *testing.T) {
		a, err := post(strings.NewReader("{}"), "br")
		require.NoError(t, err)
		require.Equal(t, http.StatusUnsupportedMediaType, a.Status, a.Body)
	})
	requireNoIncident(t, s)
	t.Run("at the cap", func(t *testing.T) {
		a, err := post(bytes.NewReader(padded(hookCap)), "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, a.Body)
	})
	t.Run("gzip", func(t *testing.T) {
		var small bytes.Buffer
		zw := gzip.NewWriter(&small)
		require.NoError(t, json.NewEncoder(zw).Encode(servertest.Notification(servertest.Alert{})))
		require.NoError(t, zw.Close())
		a, err := post(&small, "gzip")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, a.Body)
	})
}

// requireTooLarge wants 413. The answer may come while the body is still being
// sent, and a closed connection can then take it away: such a call is made again.
func requireTooLarge(t *testing.T, s *servertest.System, post func() (servertest.Answer, error)) {
	t.Helper()
	var a servertest.Answer
	s.Eventually("an answer to a body that is too large", func() (ok bool) {
		var err error
		a, err = post()
		return err == nil
	})
	require.Equal(t, http.StatusRequestEntityTooLarge, a.Status, a.Body)
	_, ok := a.Problem()
	require.True(t, ok, a.Body)
}

var spaces = bytes.Repeat([]byte(" "), 64<<10)

// countingSpaces never ends. The client may still be sending it when the answer is there.
type countingSpaces struct{ read atomic.Int64 }

func (c *countingSpaces) Read(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		rest = rest[copy(rest, spaces):]
	}
	c.read.Add(int64(len(p)))
	return len(p), nil
}

func requireNoIncident(t *testing.T, s *servertest.System) {
	t.Helper()
	var page struct{ Items []json.RawMessage }
	s.Get("/api/v1/incidents", &page)
	require.Empty(t, page.Items)
	s.Get("/api/v1/alerts", &page)
	require.Empty(t, page.Items)
}

// Values that are no numbers travel as text or are left aside; no answer is a 500.
func TestC27_AlertsWithValuesThatAreNoNumbers(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	for i, value := range []string{`"NaN"`, `"+Inf"`, `1.7976931348623157e308`, `"1.7976931348623157e308"`, `null`, `{"A":"NaN"}`} {
		n := servertest.Notification(servertest.Alert{Name: fmt.Sprint("Odd", i), Annotations: map[string]string{
			"value": "NaN", "summary": "decode is +Inf", "suggested_actions": "set_rate_limit:target=global;requests_per_second=NaN", "runbook": "slow-model",
		}})
		one := n["alerts"].([]map[string]any)[0] //nolint:forcetypeassert // as Notification makes it
		one["value"], one["values"] = json.RawMessage(value), json.RawMessage(value)
		n["groupKey"] = fmt.Sprint("odd", i)
		one["fingerprint"] = fmt.Sprintf("a1b2c3d4e5f6071%d", i)
		a := s.Do(servertest.Request{Method: http.MethodPost, Path: hook, Token: s.Tokens.Hook, Body: n})
		require.Equal(t, http.StatusOK, a.Status, "C27 %s: %s", value, a.Body)
		var r servertest.Receipt
		require.NoError(t, json.Unmarshal([]byte(a.Body), &r))
		var detail struct {
			Alerts      []struct{ Annotations map[string]string }
			Suggestions []struct{ Action string }
			Runbooks    []struct{ Runbook string }
		}
		s.Get("/api/v1/incidents/"+r.Incident, &detail)
		require.Equal(t, "NaN", detail.Alerts[0].Annotations["value"], "what was said is shown as it was said")
		require.Len(t, detail.Runbooks, 1)
		for _, proposed := range detail.Suggestions {
			require.NotEqual(t, "set_rate_limit", proposed.Action, "nobody is limited to NaN requests/s")
		}
	}
	var page struct{ Items []json.RawMessage }
	s.Get("/api/v1/alerts", &page)
	require.Len(t, page.Items, 6)
}
