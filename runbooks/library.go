package runbooks

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"holdfast/actions"
	"holdfast/strict"
	"holdfast/strict/yamlfile"
)

// Library is a set of runbooks by id. It does not change; make one with LoadDir,
// LoadFS or Join.
type Library struct {
	books map[string]loaded
}

// loaded is a runbook with the file it came from, for problems found later.
type loaded struct {
	book Runbook
	file *yamlfile.File
}

// LoadDir reads all *.yaml and *.yml files of a folder; see LoadFS.
func LoadDir(dir string) (*Library, error) {
	lib, err := loadFS(os.DirFS(dir), func(name string) string { return filepath.Join(dir, name) })
	if err != nil {
		return nil, fmt.Errorf("runbooks in %s: %w", dir, err)
	}
	return lib, nil
}

// LoadFS reads all *.yaml and *.yml files at the top of a file system. The error
// holds strict.Errors with the problems of all files, two runbooks with one id among them.
func LoadFS(fsys fs.FS) (*Library, error) {
	return loadFS(fsys, func(name string) string { return name })
}

func loadFS(fsys fs.FS, shown func(string) string) (*Library, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var all []loaded
	var errs strict.Errors
	for _, entry := range entries {
		if ext := path.Ext(entry.Name()); entry.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		l, err := read(fsys, entry.Name(), shown(entry.Name()))
		if problems, ok := errors.AsType[strict.Errors](err); ok {
			errs = append(errs, problems...)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	lib, err := collect(all)
	if problems, ok := errors.AsType[strict.Errors](err); ok {
		errs = append(errs, problems...)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return lib, nil
}

func read(fsys fs.FS, name, shown string) (loaded, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return loaded{}, err
	}
	if info.Size() > strict.MaxBytes {
		return loaded{}, strict.Errors{{File: shown, Message: fmt.Sprintf("is larger than %d bytes", strict.MaxBytes)}}
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return loaded{}, err
	}
	return parse(shown, data)
}

// collect refuses two runbooks with one id.
func collect(all []loaded) (*Library, error) {
	lib := &Library{books: map[string]loaded{}}
	var errs strict.Errors
	for _, l := range all {
		if first, taken := lib.books[l.book.ID]; taken {
			errs = append(errs, strict.FieldError{
				Path: "id", File: l.file.Name(), Line: l.file.Line("id"),
				Message: fmt.Sprintf("%q is the id of %s:%d as well: give each runbook its own", l.book.ID, first.file.Name(), first.file.Line("id")),
			})
			continue
		}
		lib.books[l.book.ID] = l
	}
	return lib, errs.Err()
}

// Join makes one library of several; strict.Errors when two runbooks have one id.
func Join(libs ...*Library) (*Library, error) {
	var all []loaded
	for _, lib := range libs {
		for _, id := range slices.Sorted(maps.Keys(lib.books)) {
			all = append(all, lib.books[id])
		}
	}
	joined, err := collect(all)
	if err != nil {
		return nil, err
	}
	return joined, nil
}

// Runbooks lists them by id. What it returns is shared and must not be changed.
func (l *Library) Runbooks() []Runbook {
	list := make([]Runbook, 0, len(l.books))
	for _, id := range l.ids() {
		list = append(list, l.books[id].book)
	}
	return list
}

// Runbook finds one by id; ErrUnknownRunbook names the ones there are.
func (l *Library) Runbook(id string) (Runbook, error) {
	if found, ok := l.books[id]; ok {
		return found.book, nil
	}
	return Runbook{}, fmt.Errorf("%w: %s", ErrUnknownRunbook, actions.NoSuch("runbook", id, l.ids()))
}

func (l *Library) ids() []string { return slices.Sorted(maps.Keys(l.books)) }
