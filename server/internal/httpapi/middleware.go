package httpapi

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast/server/identity"
)

// Body caps (R28): alert groups can be big, nothing else is.
const (
	maxBody     = 1 << 20
	maxHookBody = 32 << 20
)

// bodyTime is how long a caller may take to send a body.
const bodyTime = time.Minute

// rawKey holds the raw body of operations that read it themselves.
const rawKey = "raw_body"

// rawOperations read their body as it came: their own strict decoders name the
// line that is wrong, or the bytes are kept.
var rawOperations = map[string]bool{"receiveAlertmanager": true, "putPolicy": true, "ackPolicy": true}

// observe counts and logs each request once, without query or body.
func (a *handlers) observe(c *gin.Context) {
	start := time.Now()
	c.Next()
	route := c.FullPath()
	if route == "" {
		route = "other"
	}
	status := strconv.Itoa(c.Writer.Status())
	a.metrics.requests.WithLabelValues(route, methodLabel(c.Request.Method), status).Inc()
	a.metrics.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
	if c.Writer.Status() >= 500 {
		a.log.Warn("request failed", "method", c.Request.Method, "route", route, "status", c.Writer.Status(), "seconds", time.Since(start).Seconds())
	}
}

// methodLabel keeps made-up methods out of the metrics.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	default:
		return "other"
	}
}

// recovered answers 500 after a panic, except where the panic is net/http's own way to cut a connection.
func (a *handlers) recovered(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler)
		}
		a.log.Error("panic", "route", c.FullPath(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		if !c.Writer.Written() {
			a.fail(c, errors.New("panic"))
		}
		c.Abort()
	}()
	c.Next()
}

func securityHeaders(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	if strings.HasPrefix(c.Request.URL.Path, "/api/") {
		h.Set("Cache-Control", "no-store")
	}
	c.Next()
}

// capBody bounds the body, compressed and decompressed alike.
func (a *handlers) capBody(c *gin.Context) {
	limit := int64(maxBody)
	if a.described.operation(c) == "receiveAlertmanager" {
		limit = maxHookBody
	}
	if c.Request.ContentLength > limit {
		a.fail(c, tooLarge(limit))
		c.Abort()
		return
	}
	// A body that trickles in must not hold a handler; streams have none to read.
	if err := http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(bodyTime)); err != nil {
		a.log.Warn("no read deadline", "error", err)
	}
	body := http.MaxBytesReader(c.Writer, c.Request.Body, limit)
	switch enc := c.GetHeader("Content-Encoding"); enc {
	case "", "identity":
		c.Request.Body = body
	case "gzip":
		zr, err := gzip.NewReader(body)
		if err != nil {
			a.fail(c, invalidRequest(errors.New("the body is not gzip, as Content-Encoding says")))
			c.Abort()
			return
		}
		c.Request.Header.Del("Content-Encoding")
		c.Request.ContentLength = -1
		// A small body can unpack to a huge one: the cap holds for what comes out.
		c.Request.Body = http.MaxBytesReader(c.Writer, io.NopCloser(zr), limit)
	default:
		a.problem(c, problem{status: http.StatusUnsupportedMediaType, kind: "unsupported-media-type", title: "Content-Encoding is not supported", detail: "send the body as it is, or gzip"})
		c.Abort()
	}
}

// authenticate finds out who asks: a bearer token, or the console's cookie.
// Nothing is taken from the query string (R28).
func (a *handlers) authenticate(c *gin.Context) {
	request := c.Request
	look, cancel := context.WithTimeout(request.Context(), a.patience)
	c.Request = request.WithContext(look)
	p, err := a.principal(c)
	cancel()
	c.Request = request
	if err != nil && p.Kind != "" {
		p.IP = c.ClientIP()
		a.Identity.Refused(c.Request.Context(), p, a.described.operation(c), err)
	}
	if err != nil {
		a.fail(c, err)
		c.Abort()
		return
	}
	p.IP = c.ClientIP()
	c.Request = c.Request.WithContext(identity.WithPrincipal(c.Request.Context(), p))
}

func (a *handlers) principal(c *gin.Context) (identity.Principal, error) {
	header := c.GetHeader("Authorization")
	if header != "" {
		token, ok := strings.CutPrefix(header, "Bearer ")
		if !ok {
			return identity.Principal{}, fmt.Errorf("%w: the Authorization header must be \"Bearer <token>\"", identity.ErrUnauthenticated)
		}
		return a.Identity.AuthenticateToken(c.Request.Context(), strings.TrimSpace(token))
	}
	if accessTable[a.described.operation(c)].public {
		return identity.Principal{}, nil
	}
	cookie, err := c.Request.Cookie(a.cookieName())
	if err != nil {
		return identity.Principal{}, fmt.Errorf("%w: log in with a one-time link, or send a bearer token", identity.ErrUnauthenticated)
	}
	p, err := a.Identity.AuthenticateSession(c.Request.Context(), cookie.Value)
	if err != nil {
		return p, err
	}
	return p, a.sameOrigin(c.Request)
}

// sameOrigin refuses what another site could have made a browser send. A cookie
// with neither Sec-Fetch-Site nor Origin is refused too (R39).
func (a *handlers) sameOrigin(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return fmt.Errorf("%w: a request with a session cookie must carry Sec-Fetch-Site or Origin", identity.ErrForbidden)
	}
	if err := a.csrf.Check(r); err != nil {
		return fmt.Errorf("%w: the request comes from another site", identity.ErrForbidden)
	}
	return nil
}

// authorise applies the access table.
func (a *handlers) authorise(c *gin.Context) {
	op := a.described.operation(c)
	rule, ok := accessTable[op]
	if !ok {
		a.fail(c, fmt.Errorf("operation %q has no access rule", op))
		c.Abort()
		return
	}
	if err := rule.permit(c.Request.Context()); err != nil {
		a.metrics.denied.WithLabelValues(op).Inc()
		if p, ok := identity.From(c.Request.Context()); ok {
			a.Identity.Refused(c.Request.Context(), p, op, err)
		}
		a.fail(c, err)
		c.Abort()
	}
}
