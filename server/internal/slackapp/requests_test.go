package slackapp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/audit"
	"holdfast/server/chat"
	"holdfast/server/slacksim"
)

func TestR15_TimestampsOutsideFiveMinutesAreRefused(t *testing.T) {
	t.Parallel()
	for shift, want := range map[time.Duration]int{
		-301 * time.Second: 401, -299 * time.Second: 200, 299 * time.Second: 200, 301 * time.Second: 401,
	} {
		t.Run(shift.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.posted()
			res, err := w.press(slacksim.Tamper{TimestampShift: shift})
			require.NoError(t, err)
			require.Equal(t, want, res.Status)
			w.settle()
			presses, _, _ := w.domain.count()
			require.Equal(t, want == 200, presses == 1)
		})
	}
}

func TestR16_TheSameRequestTwiceIsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.posted()
	first, err := w.press(slacksim.Tamper{})
	require.NoError(t, err)
	require.Equal(t, 200, first.Status)
	again, err := w.sim.Replay(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, 200, again.Status)
	require.Contains(t, string(again.Response), "duplicate")
	shouted := first
	shouted.Request.Header = first.Request.Header.Clone()
	sig := strings.TrimPrefix(first.Request.Header.Get(headerSignature), "v0=")
	shouted.Request.Header.Set(headerSignature, "v0="+strings.ToUpper(sig))
	again, err = w.sim.Replay(t.Context(), shouted)
	require.NoError(t, err)
	require.Contains(t, string(again.Response), "duplicate", "another spelling of the signature is the same request")
	w.settle()
	presses, _, _ := w.domain.count()
	require.Equal(t, 1, presses)
}

func TestR17_WhatIsNotSignedByThisSecretIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.posted()
	good, err := w.press(slacksim.Tamper{})
	require.NoError(t, err)
	sig := good.Request.Header.Get(headerSignature)
	for name, tamper := range map[string]slacksim.Tamper{
		"one byte changed": {Body: func(b []byte) []byte { b = bytes.Clone(b); b[len(b)-1] ^= 1; return b }},
		"no headers":       {Unsigned: true},
		"other secret":     {Secret: "another"},
		"no v0=":           {Signature: strings.TrimPrefix(sig, "v0=")},
		"not hex":          {Signature: "v0=zz"},
		"half":             {Signature: sig[:20]},
	} {
		res, err := w.press(tamper)
		require.NoError(t, err, name)
		require.Equal(t, 401, res.Status, name)
	}
	w.settle()
	presses, _, _ := w.domain.count()
	require.Equal(t, 1, presses)
	require.Contains(t, w.logs.String(), "unsigned request refused")
	require.NotRegexp(t, `[0-9a-fA-F]{64}`, w.logs.String())
	_, err = New(Options{BotToken: "x", Channel: incidents, Chat: w.domain, Refs: w.domain, Desk: w.domain, Queue: w.queue})
	require.ErrorContains(t, err, "signing secret")
}

func TestR18_APayloadInTheURLIsNotSigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.posted()
	forged := url.Values{"payload": {`{"type":"block_actions","team":{"id":"T0HOLDFAST"},"user":{"id":"U0000ALICE"},"api_app_id":"A0HOLDFAST","actions":[{"action_id":"btn_X","value":"X"}]}`}}
	// A signed body without a payload, as a slash command's is.
	res, err := w.sim.SlashCommand(t.Context(), slacksim.SlashRequest{Command: "/holdfast", UserID: alice, Channel: incidents})
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/slack/interactions?"+forged.Encode(), bytes.NewReader(res.Request.Body))
	require.NoError(t, err)
	r.Header = res.Request.Header.Clone()
	w.clock.advance(time.Second)
	w.app.replays.forget(mustKey(t, w, r.Header, res.Request.Body)) // as if it had not been used yet
	rec := httptest.NewRecorder()
	w.app.Handler().ServeHTTP(rec, r)
	require.Equal(t, 400, rec.Code)
	w.settle()
	presses, forms, _ := w.domain.count()
	require.Zero(t, presses+forms)
}

func mustKey(t *testing.T, w *world, h http.Header, body []byte) requestKey {
	t.Helper()
	key, err := w.app.verifier.verify(h, body)
	require.NoError(t, err)
	return key
}

func TestR19_StrangersAreRefusedToldAndAudited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user   string
		tamper slacksim.Tamper
		say    string
	}{
		"other workspace": {alice, slacksim.Tamper{TeamID: "T0OTHERS"}, "workspace"},
		"other app":       {alice, slacksim.Tamper{AppID: "A0OTHERS"}, "another Slack app"},
		"guest":           {eve, slacksim.Tamper{}, "guests"},
		"user of another": {alice, slacksim.Tamper{UserTeamID: "T0OTHERS"}, "guests"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.posted()
			res, err := w.pressBy(c.user, c.tamper)
			require.NoError(t, err)
			require.Equal(t, 200, res.Status)
			w.settle()
			presses, _, denied := w.domain.count()
			require.Zero(t, presses)
			require.Equal(t, 1, denied)
			require.Equal(t, audit.Denied, w.domain.denied[0].Decision)
			told := w.sim.Ephemerals(c.user)
			require.Len(t, told, 1)
			require.Contains(t, told[0].Text, c.say)
		})
	}
}

func TestR19_CommandsOfOtherWorkspacesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	res, err := w.sim.SlashCommand(t.Context(), slacksim.SlashRequest{Command: "/holdfast", UserID: alice, Channel: incidents, Tamper: slacksim.Tamper{TeamID: "T0OTHERS"}})
	require.NoError(t, err)
	require.Contains(t, string(res.Response), "Refused")
	_, _, denied := w.domain.count()
	require.Equal(t, 1, denied)
}

func TestR28_BodiesOverOneMiBAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for _, path := range []string{"interactions", "commands", "events"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/slack/"+path, io.LimitReader(zeros{}, maxBody+1))
		rec := httptest.NewRecorder()
		w.app.Handler().ServeHTTP(rec, r)
		require.Equal(t, 413, rec.Code)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestC38_EveryRouteChecksSignatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	body := url.Values{"payload": {`{"type":"block_actions","team":{"id":"T0HOLDFAST"},"user":{"id":"U1"},"actions":[{"action_id":"trip_breaker","value":"42"}]}`}}.Encode()
	for _, path := range []string{"interactions", "commands", "events"} {
		for _, sig := range []string{"", "v0=00"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/slack/"+path, strings.NewReader(body))
			if sig != "" {
				r.Header.Set(headerSignature, sig)
				r.Header.Set(headerTimestamp, "1772366400")
			}
			rec := httptest.NewRecorder()
			w.app.Handler().ServeHTTP(rec, r)
			require.Equal(t, 401, rec.Code, path+sig)
		}
	}
	w.settle()
	presses, forms, denied := w.domain.count()
	require.Zero(t, presses+forms+denied)
}

func TestR21_TheAcknowledgementDoesNotWaitForTheCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.posted()
	release := make(chan struct{})
	w.domain.accept = func(ctx context.Context, _ chat.Press) (chat.Answer, error) {
		select {
		case <-release:
			return chat.Answer{}, nil
		case <-ctx.Done():
			return chat.Answer{}, ctx.Err()
		}
	}
	for range 20 {
		res, err := w.press(slacksim.Tamper{})
		require.NoError(t, err)
		require.True(t, res.Acked())
		w.clock.advance(time.Second) // another timestamp is another request
	}
	presses, _, _ := w.domain.count()
	require.Zero(t, presses)
	close(release)
	w.settle()
	presses, _, _ = w.domain.count()
	require.Equal(t, 20, presses)
}

func TestAFullQueueIsSaidAloudAndTheRequestMayComeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	w.posted()
	for range queueSize {
		require.True(t, w.app.jobs.offer(func(context.Context) {}))
	}
	res, err := w.press(slacksim.Tamper{})
	require.NoError(t, err)
	require.Equal(t, 503, res.Status)
	require.NoError(t, w.app.Start(t.Context()))
	w.settle()
	res, err = w.sim.Replay(t.Context(), res)
	require.NoError(t, err)
	require.Equal(t, 200, res.Status)
	require.NotContains(t, string(res.Response), "duplicate")
	stopWithin(t, w.app.Stop)
	presses, _, _ := w.domain.count()
	require.Equal(t, 1, presses)
}

func TestStopFinishesWhatWasAcceptedAndThenRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	w.posted()
	res, err := w.press(slacksim.Tamper{})
	require.NoError(t, err)
	require.True(t, res.Acked())
	require.NoError(t, w.app.Start(t.Context()))
	stopWithin(t, w.app.Stop)
	presses, _, _ := w.domain.count()
	require.Equal(t, 1, presses)
	require.Len(t, w.sim.Ephemerals(alice), 1, "the reply is given, too")
	w.clock.advance(time.Second)
	res, err = w.press(slacksim.Tamper{})
	require.NoError(t, err)
	require.Equal(t, 503, res.Status)
}

func TestStopCutsOffWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	started := make(chan struct{})
	require.NoError(t, w.app.Start(t.Context()))
	require.True(t, w.app.jobs.offer(func(ctx context.Context) { close(started); <-ctx.Done() }))
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, w.app.Stop(ctx), "cut off")
}

func TestAPanicInAJobIsOneFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	require.True(t, w.app.jobs.offer(func(context.Context) { panic("broken") }))
	w.settle()
	require.Contains(t, w.logs.String(), "broken")
}

func TestAClickThatCannotBeRecordedSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.posted()
	w.domain.accept = func(context.Context, chat.Press) (chat.Answer, error) {
		return chat.Answer{}, errors.New("database is away")
	}
	_, err := w.press(slacksim.Tamper{})
	require.NoError(t, err)
	w.settle()
	told := w.sim.Ephemerals(alice)
	require.Len(t, told, 1)
	require.Contains(t, told[0].Text, "Nothing was done")
}

func TestTheWorkspaceIsLearntWhenSlackIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true, app: func(o *Options) { o.TeamIDs = nil }})
	w.posted()
	res, err := w.press(slacksim.Tamper{})
	require.NoError(t, err)
	require.Equal(t, 503, res.Status)
	w.app.learnTeam(t.Context())
	require.NoError(t, w.app.Start(t.Context()))
	res, err = w.sim.Replay(t.Context(), res)
	require.NoError(t, err)
	require.Equal(t, 200, res.Status)
	stopWithin(t, w.app.Stop)
	presses, _, _ := w.domain.count()
	require.Equal(t, 1, presses)
}

func TestEventsAnswerTheAddressCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	require.NoError(t, w.sim.VerifyEventsURL(t.Context()))
}

func TestStatusCommandListsOpenIncidentsLiterally(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	in := openIncident()
	in.Title = "<!channel> a|b & co"
	w.domain.open = append(w.domain.open, in)
	res, err := w.sim.Slash(t.Context(), "/holdfast", "status", alice, incidents)
	require.NoError(t, err)
	require.Equal(t, 200, res.Status)
	told := w.sim.Ephemerals(alice)
	require.Len(t, told, 1)
	require.Empty(t, told[0].Notifies())
	require.Contains(t, told[0].Visible(), "<!channel>")
	res, err = w.sim.Slash(t.Context(), "/holdfast", "help", alice, incidents)
	require.NoError(t, err)
	require.Contains(t, string(res.Response), "status")
}
