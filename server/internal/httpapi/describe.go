package httpapi

import (
	"bytes"
	"encoding/json"
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
	if err := wholeBody(c.Request); err != nil {
		a.fail(c, err)
		c.Abort()
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

// wholeBody refuses a body with something after its JSON value: the decoders
// behind it stop at the value's end.
func wholeBody(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return describedError(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	dec := json.NewDecoder(bytes.NewReader(body))
	// What is missing or malformed is left to the validator, which says where.
	if dec.Decode(&json.RawMessage{}) == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			return invalidRequest(errors.New("the body goes on after its JSON value"))
		}
	}
	return nil
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
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
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
	// The lists and wrappers are unpacked one by one, so that each problem keeps its place.
	switch e := err.(type) { //nolint:errorlint // errors.As would jump over a list to its first member
	case openapi3.MultiError:
		for _, inner := range e {
			collect(inner, where, out)
		}
	case *openapi3filter.RequestError:
		if e.Parameter != nil {
			where = e.Parameter.Name
		}
		if e.Err == nil {
			out.add(where, e.Reason)
			return
		}
		collect(e.Err, where, out)
	case *openapi3.SchemaError:
		path := strings.Join(e.JSONPointer(), ".")
		if path == "" {
			path = where
		}
		if name := unsupported.FindStringSubmatch(e.Reason); name != nil {
			out.add(strings.TrimPrefix(path+"."+name[1], "."), "is not a field of this request")
			return
		}
		out.add(path, e.Reason)
	default:
		if parse, ok := errors.AsType[*openapi3filter.ParseError](err); ok && parse.Reason != "" {
			out.add(where, firstLine(parse.Error()))
			return
		}
		out.add(where, firstLine(err.Error()))
	}
}

// unsupported is how the validator names a field that is not described.
var unsupported = regexp.MustCompile(`^property "(.+)" is unsupported$`)

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
