package enginesim

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
)

// apiError is an error in the shape of the OpenAI API.
type apiError struct {
	status int
	header http.Header

	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (e *apiError) Error() string { return e.Message }

// badRequest is a 400 about one field; an empty param is the whole body.
func badRequest(param, message string) *apiError {
	e := &apiError{status: http.StatusBadRequest, Message: message, Type: "invalid_request_error"}
	if param != "" {
		e.Param = &param
	}
	return e
}

// withCode sets the machine-readable code.
func (e *apiError) withCode(code string) *apiError {
	e.Code = &code
	return e
}

func serverError(status int, message string) *apiError {
	kind := "server_error"
	if status < 500 {
		kind = "invalid_request_error"
	}
	return &apiError{status: status, Message: message, Type: kind}
}

// engineError turns an error of the model into an answer.
func (e *Engine) engineError(err error, w work) *apiError {
	switch {
	case errors.Is(err, errContextTooLong):
		return badRequest("messages", "This model's maximum context length is "+
			strconv.Itoa(e.opts.Profile.MaxContextTokens)+" tokens. However, you requested "+
			strconv.Itoa(w.context())+" tokens ("+strconv.Itoa(w.prompt)+" in the input, "+
			strconv.Itoa(w.context()-w.prompt)+" in the output). Please reduce the length of the input or the output.").
			withCode("context_length_exceeded")
	case errors.Is(err, errQueueFull):
		return serverError(http.StatusServiceUnavailable, "The engine's waiting queue is full.").
			withCode("queue_full").withRetryAfter(1)
	case errors.Is(err, errRestarting):
		left := e.State().RestartSecondsLeft / e.opts.TimeScale
		return serverError(http.StatusServiceUnavailable, "EngineDeadError: the engine is restarting after CUDA out of memory.").
			withCode("engine_restarting").withRetryAfter(int(left) + 1)
	case errors.Is(err, errOutOfMemory):
		return serverError(http.StatusInternalServerError, "EngineDeadError: CUDA out of memory. "+
			"Tried to allocate more than the largest contiguous free block.").withCode("out_of_memory")
	case errors.Is(err, errStopping):
		return serverError(http.StatusServiceUnavailable, "The engine is shutting down.").withCode("shutting_down")
	}
	return serverError(http.StatusInternalServerError, "Internal error.")
}

func (e *apiError) withRetryAfter(seconds int) *apiError {
	e.header = http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	return e
}

// errorBody is the JSON document around an apiError.
type errorBody struct {
	Error *apiError `json:"error"`
}

func (e *apiError) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), e.header)
	writeJSON(w, e.status, errorBody{e})
}

// writeJSON ignores write errors: the client has left, which its context reports.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
