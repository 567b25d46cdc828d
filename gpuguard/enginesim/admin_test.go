package enginesim

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func adminURL(e *Engine, path string) string { return "http://" + e.AdminAddr() + "/admin/" + path }

func TestAdminKnobs(t *testing.T) {
	t.Parallel()
	e := startEngine(t, func(o *Options) { o.AdminListen = "127.0.0.1:0" })
	require.NotEqual(t, e.Addr(), e.AdminAddr())
	require.Equal(t, 404, send(t, "GET", "http://"+e.Addr()+"/admin/knobs", "").status, "not on the public listener")

	r := send(t, "PATCH", adminURL(e, "knobs"), `{"decode_multiplier":4,"fail_ratio":0.5}`)
	require.Equal(t, 200, r.status, r.body)
	r = send(t, "PATCH", adminURL(e, "knobs"), `{"fail_status":503}`)
	require.Equal(t, 200, r.status)
	want := DefaultKnobs()
	want.DecodeMultiplier, want.FailRatio, want.FailStatus = 4, 0.5, 503
	require.Equal(t, want, e.Knobs(), "PATCH keeps what it does not name")

	r = send(t, "PUT", adminURL(e, "knobs"), `{"empty_ratio":0.25}`)
	require.Equal(t, 200, r.status)
	want = DefaultKnobs()
	want.EmptyRatio = 0.25
	require.Equal(t, want, e.Knobs(), "PUT resets what it does not name")
	var got Knobs
	require.NoError(t, json.Unmarshal([]byte(send(t, "GET", adminURL(e, "knobs"), "").body), &got))
	require.Equal(t, want, got)

	require.Equal(t, 200, send(t, "POST", adminURL(e, "reset"), "").status)
	require.Equal(t, DefaultKnobs(), e.Knobs())

	var state State
	require.NoError(t, json.Unmarshal([]byte(send(t, "GET", adminURL(e, "state"), "").body), &state))
	require.InDelta(t, 211.3, state.Capacity.SurvivingRPS, 0.1)
	require.Equal(t, StatusReady, state.Status)
}

func TestAdminRefusesBadKnobs(t *testing.T) {
	t.Parallel()
	e := startEngine(t, nil)
	tests := []struct{ body, detail string }{
		{`{"speed":1}`, `unknown field "speed", want one of seed, decode_multiplier`},
		{`{"Fail_Ratio":1}`, `unknown field "Fail_Ratio"`},
		{`{"fail_ratio":"1"}`, `fail_ratio is "1", want a number`},
		{`{"fail_status":500.5}`, `fail_status is 500.5, want an integer`},
		{`{"fail_ratio":null}`, `fail_ratio is null`},
		{`{"fail_ratio":1.1}`, `fail_ratio is 1.1, want 0 to 1`},
		{`{"fail_status":200}`, `fail_status is 200, want 400 to 599`},
		{`{"cut_ratio":-1,"hang_ratio":2}`, `cut_ratio is -1, want 0 to 1; invalid knobs: hang_ratio is 2`},
		{`[]`, `want a JSON object`},
		{`null`, `want a JSON object`},
		{``, `want a JSON object`},
		{`{} {}`, `unexpected data`},
	}
	for _, tt := range tests {
		for _, method := range []string{"PUT", "PATCH"} {
			r := send(t, method, adminURL(e, "knobs"), tt.body)
			require.Equal(t, 400, r.status, tt.body)
			require.Equal(t, "application/problem+json", r.header.Get("Content-Type"))
			var got problem
			require.NoError(t, json.Unmarshal([]byte(r.body), &got))
			require.Contains(t, got.Detail, tt.detail)
		}
	}
	require.Equal(t, 413, send(t, "PUT", adminURL(e, "knobs"), strings.Repeat(" ", maxKnobsBytes+1)).status)
	require.Equal(t, DefaultKnobs(), e.Knobs(), "nothing was applied in part")
}

func TestAdminAnswersOnlyItsOwnHost(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		o := DefaultOptions()
		o.AllowRemoteAdmin = open
		e, err := New(o)
		require.NoError(t, err)
		req := httptest.NewRequest(http.MethodGet, "/admin/state", nil) // from 192.0.2.1
		w := httptest.NewRecorder()
		e.Handler().ServeHTTP(w, req)
		if open {
			require.Equal(t, 200, w.Code)
		} else {
			require.Equal(t, 403, w.Code)
		}
	}
}

func TestAdminRefusesOtherSites(t *testing.T) {
	t.Parallel()
	e := startEngine(t, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, adminURL(e, "reset"), nil)
	require.NoError(t, err)
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	require.Equal(t, 403, do(t, req).status)
}

func TestFaultsAreRepeatableAndMeetTheirRatio(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := drawKnobs(t)
		const n = 3000
		count := map[fault]int{}
		for i := range uint64(n) {
			f := k.fault(i, true)
			require.Equal(t, f, k.fault(i, true))
			count[f]++
		}
		left := 1.0
		for i, ratio := range []float64{k.HangRatio, k.FailRatio, k.EmptyRatio, k.ErrorIn200Ratio, k.CutRatio} {
			require.InDelta(t, left*ratio, float64(count[injectedFaults[i]])/n, 0.06)
			left *= 1 - ratio
		}
		require.InDelta(t, k.goodRatio(), float64(count[faultNone])/n, 0.06)
	})
}

func TestSettingKnobsStartsTheDrawsAgain(t *testing.T) {
	t.Parallel()
	e := startEngine(t, nil)
	k := DefaultKnobs()
	k.FailRatio = 0.5
	run := func() (out []int) {
		require.NoError(t, e.SetKnobs(k))
		for range 20 {
			out = append(out, send(t, "POST", chatURL(e), plainBody).status)
		}
		return out
	}
	first := run()
	require.Equal(t, first, run())
	require.Contains(t, first, 200)
	require.Contains(t, first, 500)
	k.Seed = 2
	require.NotEqual(t, first, run())
}

func FuzzParseKnobs(f *testing.F) {
	f.Add([]byte(`{"fail_ratio":0.5,"seed":18446744073709551615}`))
	f.Add([]byte(`{"x":[[]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		k, err := ParseKnobs(body, DefaultKnobs())
		if err != nil {
			require.ErrorIs(t, err, ErrInvalidKnobs)
			return
		}
		again, err := json.Marshal(k)
		require.NoError(t, err)
		back, err := ParseKnobs(again, DefaultKnobs())
		require.NoError(t, err)
		require.Equal(t, k, back)
	})
}

func FuzzChatRequest(f *testing.F) {
	f.Add([]byte(plainBody))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"max_tokens":-1}`))
	o := DefaultOptions()
	f.Fuzz(func(t *testing.T, body []byte) {
		var req chatRequest
		if json.Unmarshal(body, &req) != nil {
			return
		}
		p, err := req.validate()
		if err != nil {
			require.Equal(t, 400, err.status)
			require.NotEmpty(t, err.Message)
			return
		}
		w := req.work(p, o)
		require.Positive(t, w.prompt)
		require.Positive(t, w.output)
	})
}
