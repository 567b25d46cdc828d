package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// sourceFile is one parsed Go file.
type sourceFile struct {
	path      string // slash-separated, from the repository root
	folder    string // folder of path
	test      bool   // _test.go
	generated bool   // carries the "Code generated … DO NOT EDIT." line
	imports   []string
	ast       *ast.File
}

// readTree parses every Go file of the repository except those of nested
// modules, testdata, installed npm packages and hidden folders.
func readTree(fsys fs.FS) ([]sourceFile, error) {
	var files []sourceFile
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipFolder(fsys, name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		file, err := readFile(fsys, name)
		if err != nil {
			return err
		}
		files = append(files, file)
		return nil
	})
	return files, err
}

// skipFolder reports whether a folder holds no sources of this module.
func skipFolder(fsys fs.FS, name string) bool {
	if name == "." {
		return false
	}
	base := path.Base(name)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules" {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(name, "go.mod"))
	return err == nil
}

// readFile parses one file.
func readFile(fsys fs.FS, name string) (sourceFile, error) {
	content, err := fs.ReadFile(fsys, name)
	if err != nil {
		return sourceFile{}, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return sourceFile{}, err
	}
	file := sourceFile{
		path:      name,
		folder:    path.Dir(name),
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(parsed),
		ast:       parsed,
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return sourceFile{}, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		file.imports = append(file.imports, imported)
	}
	return file, nil
}

// matches reports whether a folder or an import path fits a pattern: a plain
// path fits itself, "x/..." fits x and everything below it, "..." everything.
func matches(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == tree || strings.HasPrefix(name, tree+"/")
	}
	return pattern == name
}

// matchesAny reports whether one of the patterns fits.
func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if matches(pattern, name) {
			return true
		}
	}
	return false
}

// isStandard reports whether an import path is of the standard library: its
// first element has no dot and is not this module.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return first != module && !strings.Contains(first, ".")
}

// isHarness reports whether a folder is a test harness: a package named …test
// or the module's own test environment.
func isHarness(folder string) bool {
	return strings.HasSuffix(path.Base(folder), "test") || folder == "internal/testenv"
}
