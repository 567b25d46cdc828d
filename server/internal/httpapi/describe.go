package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/gin-gonic/gin"

	"holdfast/server/api"
)

// description is openapi.yaml, indexed by gin's routes.
type description struct {
	doc    *openapi3.T
	routes map[string]*routers.Route
}

var pathParam = regexp.MustCompile(`\{([^}]+)\}`)

func describe() (*description, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	d := &description{doc: doc, routes: map[string]*routers.Route{}}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			key := method + " " + pathParam.ReplaceAllString(path, ":$1")
			d.routes[key] = &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: op, Server: doc.Servers[0]}
		}
	}
	return d, nil
}

func (d *description) route(c *gin.Context) *routers.Route {
	return d.routes[c.Request.Method+" "+c.FullPath()]
}

// operation is the operationId of the request's route.
func (d *description) operation(c *gin.Context) string {
	if r := d.route(c); r != nil {
		return r.Operation.OperationID
	}
	return ""
}

func (d *description) operations() []string {
	var ids []string
	for _, r := range d.routes {
		ids = append(ids, r.Operation.OperationID)
	}
	return ids
}

// validate holds the request against its description: unknown fields, wrong
// types and missing values are refused by name before anything is touched.
func (a *handlers) validate(c *gin.Context) {
	defer func() { _ = http.NewResponseController(c.Writer).SetReadDeadline(time.Time{}) }()
	route := a.described.route(c)
	if rawOperations[route.Operation.OperationID] {
		a.keepRaw(c)
		return
	}
	params := map[string]string{}
	for _, p := range c.Params {
		params[p.Key] = p.Value
	}
	err := openapi3filter.ValidateRequest(c.Request.Context(), &openapi3filter.RequestValidationInput{
		Request: c.Request, PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			MultiError:         true,
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		},
	})
	if err != nil {
		a.fail(c, describedError(err))
		c.Abort()
	}
}

// keepRaw sets the body aside and leaves an empty object for the generated binding.
func (a *handlers) keepRaw(c *gin.Context) {
	ct := c.GetHeader("Content-Type")
	if base, _, _ := strings.Cut(ct, ";"); !strings.EqualFold(strings.TrimSpace(base), "application/json") {
		a.problem(c, problem{status: http.StatusUnsupportedMediaType, kind: "unsupported-media-type", title: "Content-Type must be application/json"})
		c.Abort()
		return
	}
	body, err := io.ReadAll(c.Request.Body)
	if err != nil {
		a.fail(c, describedError(err))
		c.Abort()
		return
	}
	c.Set(rawKey, body)
	c.Request.Body = io.NopCloser(bytes.NewReader([]byte("{}")))
}

// describedError turns the validator's errors into field errors without its long schema dumps.
func describedError(err error) error {
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return tooLarge(tooBig.Limit)
	}
	if strings.Contains(err.Error(), "request body too large") {
		return tooLarge(maxBody)
	}
	out := &requestError{}
	collect(err, "", out)
	return out
}

func collect(err error, where string, out *requestError) {
	var multi openapi3.MultiError
	var req *openapi3filter.RequestError
	var schema *openapi3.SchemaError
	switch {
	case asMulti(err, &multi):
		for _, e := range multi {
			collect(e, where, out)
		}
	case errors.As(err, &req) && error(req) == err:
		if req.Parameter != nil {
			where = req.Parameter.Name
		}
		if req.Err == nil {
			out.add(where, req.Reason)
			return
		}
		collect(req.Err, where, out)
	case errors.As(err, &schema):
		path := strings.Join(schema.JSONPointer(), ".")
		if path == "" {
			path = where
		}
		if name := unsupported.FindStringSubmatch(schema.Reason); name != nil {
			out.add(strings.TrimPrefix(path+"."+name[1], "."), "is not a field of this request")
			return
		}
		out.add(path, schema.Reason)
	default:
		out.add(where, firstLine(err.Error()))
	}
}

// unsupported is how the validator names a field that is not described.
var unsupported = regexp.MustCompile(`^property "(.+)" is unsupported$`)

func asMulti(err error, target *openapi3.MultiError) bool {
	m, ok := err.(openapi3.MultiError) //nolint:errorlint // only the outermost list; inner ones keep their place
	if ok {
		*target = m
	}
	return ok
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	if len(line) > 300 {
		line = line[:300]
	}
	return line
}

func serveDescription(c *gin.Context) {
	c.Data(http.StatusOK, "application/yaml", api.OpenAPI)
}
