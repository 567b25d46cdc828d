package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast/strict"
)

// Parse checks the YAML itself and turns it into JSON; name stands for the file
// in messages. It does not look at what the content means.
func Parse(name string, data []byte) (*File, error) {
	if len(data) > strict.MaxBytes {
		return nil, strict.Errors{{File: name, Message: fmt.Sprintf("is larger than %d bytes", strict.MaxBytes)}}
	}
	root, err := document(name, data)
	if err != nil {
		return nil, err
	}
	c := &converter{file: &File{name: name, lines: map[string]int{"": root.Line}}}
	c.value(root, "", 0)
	if err := c.errs.Err(); err != nil {
		return nil, err
	}
	c.file.json = c.out.Bytes()
	return c.file, nil
}

// document returns the content node of the only document.
func document(name string, data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF), err == nil && isEmpty(&doc):
		return nil, strict.Errors{{File: name, Line: 1, Message: "is empty"}}
	case err != nil:
		return nil, syntaxError(name, err)
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], nil
	case err != nil:
		return nil, syntaxError(name, err)
	default:
		return nil, strict.Errors{{
			File: name, Line: second.Line,
			Message: "has a second document (after ---): give each document its own file",
		}}
	}
}

func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) != 1 || (doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null")
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`)

func syntaxError(name string, err error) error {
	fe := strict.FieldError{File: name, Message: err.Error()}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		fe.Line, _ = strconv.Atoi(m[1])
		fe.Message = "is not YAML: " + strings.TrimSpace(m[2])
	}
	return strict.Errors{fe}
}
