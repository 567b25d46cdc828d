package gpuguard_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard"
	"holdfast/gpuguard/gpuguardtest"
)

// BenchmarkProxy compares the gateway with a bare httputil.ReverseProxy over the
// same transport settings on loopback. Figures include client and upstream,
// which are the same for both: the difference is the gateway.
func BenchmarkProxy(b *testing.B) {
	answer := `{"choices":[{"message":{"content":"` + strings.Repeat("token ", 160) + `"}}]}`
	stream := strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"token\"}}]}\n\n", 50) + "data: [DONE]\n\n"
	kinds := []struct {
		name, request string
		upstream      http.HandlerFunc
	}{
		{"json", `{"model":"m","messages":[{"role":"user","content":"hello"}]}`, gpuguardtest.JSON(http.StatusOK, answer)},
		{"prompt98KB", `{"messages":[{"content":"` + strings.Repeat("a long prompt ", 7000) + `"}]}`, gpuguardtest.JSON(http.StatusOK, answer)},
		{"stream", `{"stream":true}`, gpuguardtest.Events(strings.SplitAfter(stream, "\n\n")...)},
	}
	for _, k := range kinds {
		up := httptest.NewServer(k.upstream)
		defer up.Close()
		b.Run(k.name+"/reverseproxy", func(b *testing.B) { load(b, reverseProxy(b, up.URL), k.request) })
		b.Run(k.name+"/gateway", func(b *testing.B) {
			g := gpuguardtest.Start(b, gpuguardtest.Document(up.URL), func(o *gpuguard.Options) {
				o.AccessLog = slog.New(slog.DiscardHandler)
			})
			load(b, g.URL, k.request)
		})
		b.Run(k.name+"/gateway+log", func(b *testing.B) {
			g := gpuguardtest.Start(b, gpuguardtest.Document(up.URL), func(o *gpuguard.Options) {
				o.AccessLog = slog.New(slog.NewJSONHandler(discard{}, nil))
			})
			load(b, g.URL, k.request)
		})
	}
}

// discard is an access log that is written and thrown away.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func reverseProxy(b *testing.B, to string) string {
	u, err := url.Parse(to)
	require.NoError(b, err)
	p := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(u) },
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true, IdleConnTimeout: 4 * time.Second},
	}
	s := httptest.NewServer(p)
	b.Cleanup(s.Close)
	return s.URL
}

func load(b *testing.B, base, body string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequest(http.MethodPost, base+gpuguardtest.ChatPath, bytes.NewReader([]byte(body)))
			if err != nil {
				b.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+gpuguardtest.Key)
			resp, err := client.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK {
				b.Errorf("status %d, error %v", resp.StatusCode, err)
				return
			}
		}
	})
}
