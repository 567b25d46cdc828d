package httpapi

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast/server/identity"
	"holdfast/server/internal/httpapi/gen"
)

// cookieName is __Host- bound on https; plain http is for loopback.
func (a *handlers) cookieName() string {
	if a.PublicURL.Scheme == "https" {
		return "__Host-holdfast_session"
	}
	return "holdfast_session"
}

func (a *handlers) cookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure follows the public address: plain http is for loopback alone
		Name: a.cookieName(), Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: a.PublicURL.Scheme == "https", SameSite: http.SameSiteStrictMode,
	}
}

// loggedIn sets the cookie beside the answer.
type loggedIn struct {
	me     gen.Me
	cookie *http.Cookie
}

// VisitCreateSessionResponse writes cookie and answer.
func (l loggedIn) VisitCreateSessionResponse(w http.ResponseWriter) error {
	http.SetCookie(w, l.cookie)
	return gen.CreateSession200JSONResponse(l.me).VisitCreateSessionResponse(w)
}

func (a *handlers) CreateSession(ctx context.Context, r gen.CreateSessionRequestObject) (gen.CreateSessionResponseObject, error) {
	if c, ok := ctx.(*gin.Context); ok {
		if err := a.sameOriginIfBrowser(c.Request); err != nil {
			return nil, err
		}
	}
	cookie, person, err := a.Identity.ConsumeLogin(ctx, r.Body.Code)
	if err != nil {
		return nil, err
	}
	me, err := a.me(identity.WithPrincipal(ctx, identity.Of(person, identity.ChannelConsole)))
	return loggedIn{me: me, cookie: a.cookie(cookie, int(a.SessionTTL.Seconds()))}, err
}

// sameOriginIfBrowser keeps another site from logging a browser in as somebody else.
func (a *handlers) sameOriginIfBrowser(r *http.Request) error {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return nil
	}
	return a.sameOrigin(r)
}

// loggedOut takes the cookie back.
type loggedOut struct{ cookie *http.Cookie }

// VisitDeleteSessionResponse clears the cookie.
func (l loggedOut) VisitDeleteSessionResponse(w http.ResponseWriter) error {
	http.SetCookie(w, l.cookie)
	return gen.DeleteSession204Response{}.VisitDeleteSessionResponse(w)
}

func (a *handlers) DeleteSession(ctx context.Context, _ gen.DeleteSessionRequestObject) (gen.DeleteSessionResponseObject, error) {
	c, ok := ctx.(*gin.Context)
	if !ok {
		return nil, identity.ErrUnauthenticated
	}
	cookie, err := c.Request.Cookie(a.cookieName())
	if err != nil {
		return nil, badField("", "there is no session cookie to log out")
	}
	return loggedOut{a.cookie("", -1)}, a.Identity.Logout(ctx, cookie.Value)
}
