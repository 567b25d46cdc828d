package prom_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/signals"
	"holdfast/server/internal/prom"
	"holdfast/server/observe"
)

// serve makes a Remote of a server that answers as handle says.
func serve(t *testing.T, handle http.HandlerFunc, change ...func(*prom.RemoteOptions)) *prom.Remote {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	o := prom.RemoteOptions{URL: s.URL}
	for _, c := range change {
		c(&o)
	}
	r, err := prom.NewRemote(o)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func success(kind, result string) http.HandlerFunc {
	return says(http.StatusOK, fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":%s}}`, kind, result))
}

func TestRemoteAnswers(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_770_112_800_123).UTC()
	for name, tt := range map[string]struct {
		kind, result string
		want         []signals.Sample
	}{
		"a vector": {"vector", `[{"metric":{"__name__":"up","job":"engine"},"value":[1770112800.123,"1"]}]`, []signals.Sample{
			{Labels: map[string]string{"__name__": "up", "job": "engine"}, Value: 1, At: at},
		}},
		"a scalar": {"scalar", `[1770112800.123,"2.5"]`, []signals.Sample{{Labels: map[string]string{}, Value: 2.5, At: at}}},
		"nothing":  {"vector", `[]`, []signals.Sample{}},
		"infinity": {"vector", `[{"metric":{},"value":[1770112800.123,"+Inf"]}]`, []signals.Sample{{Labels: map[string]string{}, Value: math.Inf(1), At: at}}},
		"greatest": {"vector", `[{"metric":{},"value":[1770112800.123,"1.7976931348623157e+308"]}]`, []signals.Sample{{Labels: map[string]string{}, Value: math.MaxFloat64, At: at}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := serve(t, success(tt.kind, tt.result)).Query(t.Context(), "up", at)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestC27NaNIsKeptAndIsNoData(t *testing.T) {
	t.Parallel()
	r := serve(t, success("vector", `[{"metric":{},"value":[1770112800,"NaN"]}]`))
	got, err := r.Query(t.Context(), "up", time.Time{})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.True(t, math.IsNaN(got[0].Value))
	require.False(t, got[0].Valid())
}

func TestRemoteRange(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_770_112_800, 0).UTC()
	asked := make(chan string, 1)
	r := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.FormValue("step") + " " + r.FormValue("start") + " " + r.FormValue("end")
		success("matrix", `[{"metric":{"pod":"a"},"values":[[1770112800,"1"],[1770112805,"NaN"]]}]`)(w, r)
	})
	got, err := r.QueryRange(t.Context(), "queue", observe.Range{Start: start, End: start.Add(5 * time.Second), Step: 5 * time.Second})
	require.NoError(t, err)
	require.Equal(t, "5 1770112800 1770112805", <-asked)
	require.Len(t, got, 1)
	require.Equal(t, map[string]string{"pod": "a"}, got[0].Labels)
	require.Equal(t, signals.Point{At: start, Value: 1}, got[0].Points[0])
	require.True(t, math.IsNaN(got[0].Points[1].Value))
	_, err = r.QueryRange(t.Context(), "queue", observe.Range{Start: start, End: start.Add(time.Hour), Step: 100 * time.Millisecond})
	require.ErrorIs(t, err, observe.ErrBadQuery)
	require.ErrorContains(t, err, "at most 11000")
}

func TestRemoteErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handle http.HandlerFunc
		query  string
		kind   error
		want   string
	}{
		"a parse error": {
			says(http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"1:5: parse error: unclosed left parenthesis"}`), "",
			observe.ErrBadQuery, "1:5: parse error: unclosed left parenthesis",
		},
		"an execution error": {
			says(http.StatusUnprocessableEntity, `{"status":"error","errorType":"execution","error":"found duplicate series"}`), "",
			observe.ErrBadQuery, "found duplicate series",
		},
		"a string":         {success("string", `[1770112800,"x"]`), "", observe.ErrBadQuery, "want a scalar or an instant vector"},
		"a range vector":   {success("matrix", `[]`), "", observe.ErrBadQuery, "want a scalar or an instant vector"},
		"a histogram":      {success("vector", `[{"metric":{},"histogram":[1770112800,{"count":"1","sum":"1","buckets":[]}]}]`), "", observe.ErrBadQuery, "native histograms"},
		"its own time-out": {says(http.StatusServiceUnavailable, `{"status":"error","errorType":"timeout","error":"query timed out"}`), "", observe.ErrUnavailable, "503"},
		"a broken server":  {says(http.StatusInternalServerError, "oops"), "", observe.ErrUnavailable, "500"},
		"no permission":    {says(http.StatusUnauthorized, "no"), "", observe.ErrUnavailable, "401"},
		"a page":           {says(http.StatusOK, "<html>"), "", observe.ErrUnavailable, "not an answer"},
		"half an answer":   {says(http.StatusOK, `{"status":"success","data":{"resultType":"vector","result":[{"met`), "", observe.ErrUnavailable, "not an answer"},
		"another place": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, "", observe.ErrUnavailable, "302"},
		"too long an answer": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, strings.NewReader(strings.Repeat("x", 2000)))
		}, "", observe.ErrUnavailable, "longer than is taken"},
		"an overlong query": {nil, strings.Repeat("x", observe.MaxQueryBytes+1), observe.ErrBadQuery, "at most"},
		"a hang-up": {func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, "", observe.ErrUnavailable, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := serve(t, tt.handle, func(o *prom.RemoteOptions) { o.MaxAnswer = 1000 })
			if tt.query == "" {
				tt.query = "up"
			}
			_, err := r.Query(t.Context(), tt.query, time.Time{})
			require.ErrorIs(t, err, tt.kind)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "http://")
		})
	}
}

func TestRemoteDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	r := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stuck:
		case <-r.Context().Done():
		}
	}, func(o *prom.RemoteOptions) { o.Timeout = 50 * time.Millisecond })
	defer close(stuck)
	_, err := r.Query(t.Context(), "up", time.Time{})
	require.ErrorIs(t, err, observe.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Targets(canceled)
	require.ErrorIs(t, err, observe.ErrUnavailable)
}

func TestCredentialsAreSentAndNeverShown(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		success("vector", "[]")(w, r)
	}))
	address := strings.Replace(s.URL, "http://", "http://watcher:hunter2@", 1)
	for _, tt := range []struct{ token, want string }{
		{"", "Basic d2F0Y2hlcjpodW50ZXIy"},
		{"t0ken", "Bearer t0ken"},
	} {
		r, err := prom.NewRemote(prom.RemoteOptions{
			URL: address, BearerToken: tt.token, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, err)
		defer r.Close()
		_, err = r.Query(t.Context(), "up", time.Time{})
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
		if tt.token != "" {
			s.Close()
			_, err = r.Query(t.Context(), "up", time.Time{})
			require.ErrorIs(t, err, observe.ErrUnavailable)
			require.Contains(t, log.String(), "does not answer")
			for _, secret := range []string{"hunter2", "watcher", "t0ken"} {
				require.NotContains(t, err.Error()+log.String(), secret)
			}
		}
	}
}

func TestRemoteAddress(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "prometheus:9090", "ftp://x", "http://", "http://:9090", "http://x/?a=b", "http://x/#f", "http://u:hunter2@[x"} {
		t.Run(bad, func(t *testing.T) {
			t.Parallel()
			_, err := prom.NewRemote(prom.RemoteOptions{URL: bad})
			require.Error(t, err)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	path := make(chan string, 1)
	r := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path <- r.URL.Path
		success("vector", "[]")(w, r)
	}, func(o *prom.RemoteOptions) { o.URL += "/prefix/" })
	_, err := r.Query(t.Context(), "up", time.Time{})
	require.NoError(t, err)
	require.Equal(t, "/prefix/api/v1/query", <-path)
	require.Equal(t, observe.Remote, r.Kind())
}

func TestRemoteRulesAndTargets(t *testing.T) {
	t.Parallel()
	r := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := `{"status":"success","data":{"activeTargets":[
			{"labels":{"job":"engine","instance":"b:1"},"scrapeUrl":"http://b:1/metrics","health":"down","lastError":"refused","lastScrape":"2026-02-03T10:00:00Z","lastScrapeDuration":0.5},
			{"labels":{"job":"engine","instance":"a:1"},"scrapeUrl":"http://a:1/metrics","health":"up","lastScrape":"2026-02-03T10:00:00Z","lastScrapeDuration":0.001}]}}`
		if strings.HasSuffix(r.URL.Path, "rules") {
			body = `{"status":"success","data":{"groups":[{"name":"g","file":"f","interval":5,"rules":[
				{"type":"recording","name":"a:b","query":"sum(a)","health":"ok","evaluationTime":0.1,"lastEvaluation":"2026-02-03T10:00:00Z"},
				{"type":"alerting","name":"A","query":"a > 1","duration":30,"labels":{"severity":"critical"},"annotations":{"summary":"s"},
				 "health":"err","lastError":"bad","evaluationTime":0.1,"lastEvaluation":"2026-02-03T10:00:00Z","state":"firing",
				 "alerts":[{"labels":{"pod":"b"},"annotations":{},"state":"pending","activeAt":"2026-02-03T09:59:00Z","value":"NaN"},
				           {"labels":{"pod":"a"},"annotations":{},"state":"firing","activeAt":"2026-02-03T09:59:00Z","value":"1e+00"}]}]}]}}`
		}
		says(http.StatusOK, body)(w, r)
	})
	targets, err := r.Targets(t.Context())
	require.NoError(t, err)
	require.Len(t, targets, 2)
	require.Equal(t, "http://a:1/metrics", targets[0].URL, "ordered")
	require.Equal(t, observe.Target{
		Job: "engine", URL: "http://b:1/metrics", Labels: map[string]string{"job": "engine", "instance": "b:1"}, Health: "down",
		LastError: "refused", ScrapedAt: time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC), Took: 500 * time.Millisecond,
	}, targets[1])
	groups, err := r.Rules(t.Context())
	require.NoError(t, err)
	require.Len(t, groups, 1)
	require.Equal(t, 5*time.Second, groups[0].Interval)
	require.Len(t, groups[0].Rules, 2)
	a := groups[0].Rules[1]
	require.Equal(t, observe.RuleFiring, a.State)
	require.Equal(t, 30*time.Second, a.For)
	require.Equal(t, "bad", a.LastError)
	require.Equal(t, "a", a.Alerts[0].Labels["pod"], "ordered")
	require.Equal(t, 1.0, a.Alerts[0].Value)
	require.True(t, math.IsNaN(a.Alerts[1].Value))
}
