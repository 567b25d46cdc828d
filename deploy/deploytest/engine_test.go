package deploytest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/enginesim"
)

// metricsOf is what an engine exports to Prometheus.
func metricsOf(t *testing.T, e *enginesim.Engine) string {
	t.Helper()
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Body.String()
}

// The model name and ports of the compose engine are those the rest expects.
func TestEngineServesTheDemoModel(t *testing.T) {
	t.Parallel()
	command := readCompose(t).Services["engine"].Command
	require.Subset(t, command, []string{"enginesim", "run", "--model", enginesim.DefaultOptions().Model})
}
