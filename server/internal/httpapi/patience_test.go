package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"
)

// hung is a handler whose database never answers.
func hung() *handlers {
	never := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	return &handlers{
		Options: Options{Ready: never, Unavailable: func(error) bool { return false }},
		log:     slog.New(slog.DiscardHandler), patience: time.Millisecond, readyTime: time.Millisecond,
	}
}

func TestAHungDatabaseIsAnsweredWith503(t *testing.T) {
	t.Parallel()
	a := hung()
	call := func(r *gin.Engine) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return w
	}
	r := gin.New()
	a.health(r)
	require.Equal(t, http.StatusServiceUnavailable, call(r).Code, "readiness does not wait for ever")

	r = gin.New()
	wait := a.ownContext(func(c *gin.Context, _ any) (any, error) {
		<-c.Request.Context().Done()
		return nil, fmt.Errorf("read: %w", c.Request.Context().Err())
	}, "ListChanges")
	r.GET("/readyz", func(c *gin.Context) {
		_, err := wait(c, nil)
		a.fail(c, err)
	})
	w := call(r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
}

func TestStreamsHaveNoDeadline(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"StreamPolicy", "StreamEvents"} {
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		_, err := hung().ownContext(func(c *gin.Context, _ any) (any, error) {
			_, bounded := c.Request.Context().Deadline()
			require.False(t, bounded)
			return nil, nil
		}, operation)(c, nil)
		require.NoError(t, err)
	}
}
