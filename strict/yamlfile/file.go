// Package yamlfile reads YAML files strictly: unknown keys, wrong types,
// duplicate keys and every YAML feature that makes a file mean more than it
// shows (anchors, aliases, merge keys, several documents) are refused, each
// problem with file, line and path. JSON files are YAML too and read the same.
package yamlfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"holdfast/strict"
)

// File is one parsed file. It remembers where each key stands, so that problems
// found later (by validation) can still name their line.
type File struct {
	name  string
	json  []byte
	lines map[string]int
}

// Load reads the file at path into dst, a non-nil pointer. Problems of content
// are strict.Errors with file and line; the File is non-nil whenever err is nil.
func Load(path string, dst any) (*File, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return f, f.Decode(dst)
}

// Decode is Load for content that is already read; name stands for the file in messages.
func Decode(name string, data []byte, dst any) (*File, error) {
	f, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	return f, f.Decode(dst)
}

// Open reads and parses the file at path, of at most strict.MaxBytes.
func Open(path string) (*File, error) {
	fh, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer fh.Close()
	data, err := io.ReadAll(io.LimitReader(fh, strict.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return Parse(path, data)
}

// Name is the file's name as given.
func (f *File) Name() string { return f.name }

// JSON is the content as JSON, for decoders of their own.
func (f *File) JSON() []byte { return slices.Clone(f.json) }

// Decode reads the content into dst as strict.DecodeJSON does, and locates every problem.
func (f *File) Decode(dst any) error {
	err := f.LocateErr(strict.DecodeJSON(f.json, dst))
	if errs, ok := errors.AsType[strict.Errors](err); ok {
		for i := range errs {
			if strings.HasPrefix(errs[i].Message, "want text, got ") && f.isScalarMistake(errs[i].Message) {
				errs[i].Message += ": put it in quotes"
			}
		}
		return errs
	}
	return err
}

// isScalarMistake tells values that quoting turns into text.
func (f *File) isScalarMistake(message string) bool {
	return !strings.HasSuffix(message, "a list") && !strings.HasSuffix(message, "an object")
}

// Locate gives each problem the file and the line of its path, or of the
// nearest key above it when the path itself is not in the file, and sorts them
// by line. Problems that already name a file are left as they are.
func (f *File) Locate(errs strict.Errors) strict.Errors {
	out := slices.Clone(errs)
	for i := range out {
		if out[i].File == "" {
			out[i].File, out[i].Line = f.name, f.Line(out[i].Path)
		}
	}
	slices.SortStableFunc(out, func(a, b strict.FieldError) int { return a.Line - b.Line })
	return out
}

// LocateErr is Locate for an error that may hold strict.Errors; any other error
// (and nil) is returned as it is.
func (f *File) LocateErr(err error) error {
	if errs, ok := errors.AsType[strict.Errors](err); ok {
		return f.Locate(errs)
	}
	return err
}

// Line is the line, from 1, at which a path or the nearest key above it stands;
// 0 when the file has none.
func (f *File) Line(path string) int {
	for {
		if line, ok := f.lines[path]; ok {
			return line
		}
		if path == "" {
			return 0
		}
		path = parent(path)
	}
}

// parent cuts the last key or index off a path.
func parent(path string) string {
	if strings.HasSuffix(path, `"]`) { // a quoted key may hold dots and brackets
		if i := strings.LastIndex(path, `["`); i >= 0 {
			return path[:i]
		}
	}
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
