package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestC61_RetryAfterHeaderForms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 25, 12, 0, 0, 0, time.UTC)
	const most = 10 * time.Minute
	tests := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"120", 120 * time.Second, true},
		{"0", 0, true},
		{"-5", 0, false},
		{"1.5", 0, false},
		{"99999999999999999999", 0, false},
		{"Sat, 25 Jul 2026 12:05:00 GMT", 300 * time.Second, true},
		{"Sat, 25 Jul 2026 11:00:00 GMT", 0, true},
		{"1799999999", most, true},
		{"", 0, false},
		{" 7 ", 7 * time.Second, true},
		{"soon", 0, false},
	}
	for _, tt := range tests {
		got, ok := RetryAfter(tt.value, now, most)
		require.Equal(t, tt.ok, ok, "%q", tt.value)
		require.Equal(t, tt.want, got, "%q", tt.value)
	}
}

func TestConnectFailureIsTold(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())

	c := NewClient(time.Second)
	defer c.Close()
	_, err = c.Do(request(t, "http://"+addr+"/?secret=1"))
	var connect *ConnectError
	require.ErrorAs(t, err, &connect)
	require.Equal(t, addr, connect.Addr)
	require.NotContains(t, err.Error(), "secret")
}

func TestConnectLimitCoversTheHandshake(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts and stays silent
	require.NoError(t, err)
	defer l.Close()
	c := NewClient(30 * time.Millisecond)
	defer c.Close()
	_, err = c.Do(request(t, "https://"+l.Addr().String()))
	var connect *ConnectError
	require.ErrorAs(t, err, &connect)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestLinkLocalIsNeverCalled(t *testing.T) {
	t.Parallel()
	c := NewClient(time.Second)
	defer c.Close()
	for _, host := range []string{"169.254.169.254", "[fe80::1%25lo]", "[::ffff:169.254.169.254]"} {
		_, err := c.Do(request(t, "http://"+host+"/latest/meta-data"))
		require.ErrorIs(t, err, ErrForbiddenAddress, host)
	}
}

func TestRedirectsArePassedThrough(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer s.Close()
	c := NewClient(time.Second)
	defer c.Close()
	resp, err := c.Do(request(t, s.URL))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusFound, resp.StatusCode)
	require.EqualValues(t, 1, hits.Load())
}

// A request that may have been processed must not be sent again, not even one
// that net/http deems safe to repeat.
func TestNothingSentIsRepeated(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/warm" {
			return
		}
		posts.Add(1)
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	c := NewClient(time.Second)
	defer c.Close()
	resp, err := c.Do(request(t, s.URL+"/warm"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/work", io.NopCloser(strings.NewReader("x")))
	require.NoError(t, err)
	r.ContentLength = 1
	_, err = c.Do(r)
	require.Error(t, err)
	var connect *ConnectError
	require.NotErrorAs(t, err, &connect)
	require.EqualValues(t, 1, posts.Load())
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return r
}
