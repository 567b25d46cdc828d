package enginesim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// decode reads one JSON object of at most MaxBodyBytes. Unknown fields are
// ignored, as engines do, because clients send many optional ones.
func (e *Engine) decode(w http.ResponseWriter, r *http.Request, into any) *apiError {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		if media, _, err := mime.ParseMediaType(ct); err != nil || media != "application/json" {
			return serverError(http.StatusUnsupportedMediaType,
				fmt.Sprintf("Unsupported Media Type %q: only 'application/json' is allowed.", ct))
		}
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, e.opts.MaxBodyBytes))
	if err := dec.Decode(into); err != nil {
		return decodeError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return trailingError(err)
	}
	return nil
}

func trailingError(err error) *apiError {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return decodeError(err)
	}
	return badRequest("", "Invalid JSON: unexpected data after the request object.")
}

func decodeError(err error) *apiError {
	var (
		tooLarge *http.MaxBytesError
		syntax   *json.SyntaxError
		wrong    *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &tooLarge):
		return serverError(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("The request body is larger than %d bytes.", tooLarge.Limit)).withCode("body_too_large")
	case errors.As(err, &syntax):
		return badRequest("", fmt.Sprintf("Invalid JSON at byte %d: %v.", syntax.Offset, syntax))
	case errors.As(err, &wrong) && wrong.Field == "":
		return badRequest("", fmt.Sprintf("The request must be a JSON object, got %s.", wrong.Value))
	case errors.As(err, &wrong):
		return badRequest(wrong.Field, fmt.Sprintf("%s: got %s, want %s.", wrong.Field, wrong.Value, jsonKind(wrong)))
	case errors.Is(err, io.EOF):
		return badRequest("", "Invalid JSON: the request body is empty.")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest("", "Invalid JSON: the request body ends too early.")
	}
	return badRequest("", "The request body could not be read.")
}

// jsonKind names the wanted type in JSON's words.
func jsonKind(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "bool":
		return "boolean"
	case "string":
		return "string"
	case "int", "int64", "uint64":
		return "integer"
	case "float64":
		return "number"
	case "slice":
		return "array"
	}
	return "object"
}
