// Package strict decodes JSON into Go structs and refuses what the struct does
// not know, naming the path of every problem ("routes.chat.timeouts.total").
// It is a leaf on the standard library, so that the policy contract may use it.
package strict

import (
	"fmt"
	"strings"
)

// FieldError is one problem at one place of a document.
type FieldError struct {
	// Path is the dotted path of the key, such as "limits.global.burst" or
	// "people[2].role"; empty for the document as a whole.
	Path string `json:"path"`
	// Message says what is wrong and what would be right. It never repeats secret values.
	Message string `json:"message"`
	// File and Line say where the key stands when the document came from a
	// file; Line counts from 1 and is 0 when unknown.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Error renders "file:line: path: message", leaving out what is unknown.
func (e FieldError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Errors is every problem found in one document, in document order.
type Errors []FieldError

// Error renders one problem a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, fe := range e {
		lines[i] = fe.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns the list as an error, or nil when it is empty.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Addf appends a problem at path.
func (e *Errors) Addf(path, format string, args ...any) {
	*e = append(*e, FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
}
