package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"holdfast/server/internal/httpapi/gen"
)

// handlers implements the generated strict interface.
type handlers struct {
	Options
	log       *slog.Logger
	csrf      *http.CrossOriginProtection
	described *description
	metrics   metrics
	// patience is how long an operation may take, and a stranger be looked up;
	// readyTime how long the database may take to say that it is there.
	patience, readyTime time.Duration
}

// Far above what anything takes here, below what pipelines and proxies wait.
const (
	defaultPatience  = 30 * time.Second
	defaultReadyTime = 3 * time.Second
)

// The generated interface is implemented whole.
var _ gen.StrictServerInterface = (*handlers)(nil)

// New makes the handler of everything the server listens to. It fails when an
// operation has no entry in the access table.
func New(opts Options) (http.Handler, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	described, err := describe()
	if err != nil {
		return nil, err
	}
	if err := checkAccessTable(described.operations()); err != nil {
		return nil, err
	}
	a := &handlers{
		Options: opts, log: opts.Logger.With("component", "api"), csrf: http.NewCrossOriginProtection(),
		described: described, metrics: newMetrics(opts.Registerer),
		patience: defaultPatience, readyTime: defaultReadyTime,
	}
	return a.routes()
}

func (a *handlers) routes() (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.ContextWithFallback = true
	r.HandleMethodNotAllowed = true
	// X-Forwarded-For is anybody's word unless a proxy is configured: the peer's address counts.
	if err := r.SetTrustedProxies(nil); err != nil {
		return nil, fmt.Errorf("trusted proxies: %w", err)
	}
	r.Use(a.observe, a.recovered, securityHeaders)
	r.NoRoute(a.fallback)
	r.NoMethod(func(c *gin.Context) {
		a.problem(c, problem{status: http.StatusMethodNotAllowed, kind: "method-not-allowed", title: "This address does not take " + c.Request.Method})
	})
	a.health(r)
	if a.Slack != nil {
		r.Any("/slack/*rest", gin.WrapH(a.Slack))
	}
	strict := gen.NewStrictHandlerWithOptions(a, []gen.StrictMiddlewareFunc{a.ownContext}, gen.StrictGinServerOptions{
		RequestErrorHandlerFunc: func(c *gin.Context, err error) { a.fail(c, invalidRequest(err)) },
		HandlerErrorFunc:        a.fail,
		ResponseErrorHandlerFunc: func(c *gin.Context, err error) {
			a.log.Warn("answer not delivered", "path", c.FullPath(), "error", err)
		},
	})
	// Before the generated code, which binds parameters first: a stranger is told
	// that they are one, and nothing else.
	operations := r.Group("", a.capBody, a.authenticate, a.authorise, a.validate)
	gen.RegisterHandlersWithOptions(operations, strict, gen.GinServerOptions{
		ErrorHandler: func(c *gin.Context, err error, _ int) { a.fail(c, invalidRequest(err)) },
	})
	r.GET("/api/v1/openapi.yaml", serveDescription)
	r.GET("/api/v1/runbook.schema.json", serveRunbookSchema)
	return r, nil
}

// ownContext gives an operation a context that outlives the request: gin uses its
// own again for the next one, while database drivers still look at it. Except for
// streams it ends in time, because a database that hangs answers nobody.
func (a *handlers) ownContext(next gen.StrictHandlerFunc, operation string) gen.StrictHandlerFunc {
	if operation == "StreamPolicy" || operation == "StreamEvents" {
		return func(c *gin.Context, request any) (any, error) { return next(c.Copy(), request) }
	}
	return func(c *gin.Context, request any) (any, error) {
		own := c.Copy()
		ctx, cancel := context.WithTimeout(c.Request.Context(), a.patience)
		defer cancel()
		own.Request = c.Request.WithContext(ctx)
		return next(own, request)
	}
}

// ready asks the database, for a bounded time.
func (a *handlers) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.readyTime)
	defer cancel()
	return a.Ready(ctx)
}

func (a *handlers) health(r *gin.Engine) {
	r.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	r.GET("/readyz", func(c *gin.Context) {
		if err := a.ready(c.Request.Context()); err != nil {
			a.log.Warn("not ready", "error", err)
			c.Header("Retry-After", "2")
			c.String(http.StatusServiceUnavailable, "the database does not answer\n")
			return
		}
		c.String(http.StatusOK, "ready\n")
	})
	if a.Gatherer != nil {
		r.GET("/metrics", gin.WrapH(promhttp.HandlerFor(a.Gatherer, promhttp.HandlerOpts{})))
	}
}

// fallback serves the console, and problem documents where a program asked.
func (a *handlers) fallback(c *gin.Context) {
	for _, prefix := range []string{"/api/", "/hooks/", "/slack/"} {
		if strings.HasPrefix(c.Request.URL.Path, prefix) || a.Console == nil {
			a.problem(c, problem{status: http.StatusNotFound, kind: "not-found", title: "There is nothing at this address"})
			return
		}
	}
	c.Status(http.StatusOK) // gin's NoRoute presets 404; the console decides
	a.Console.ServeHTTP(c.Writer, c.Request)
}
