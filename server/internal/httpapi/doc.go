// Package httpapi is the HTTP edge of the server: the generated routes of
// server/api/openapi.yaml, authentication and authorisation, problem documents,
// server-sent events, and the hooks. It is the only user of gin.
//
// A request passes: size cap → authentication → access table → cross-origin
// check → validation against the description → handler. The access table names
// every operation; an operation that is missing from it fails at start-up.
package httpapi
