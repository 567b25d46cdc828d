package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Violation is one place that breaks a rule.
type Violation struct {
	// Rule is the short name of the rule: "layer", "library", "test-only", …
	Rule string
	// Path is the file or folder, from the repository root.
	Path string
	// Message says what is wrong and why the rule is there.
	Message string
}

// String returns the violation in one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s [%s]", v.Path, v.Message, v.Rule)
}

// Check runs every rule over the Go files of a repository and returns what
// breaks them, sorted by path. The error is for files that cannot be read or
// parsed.
func Check(fsys fs.FS) ([]Violation, error) {
	files, err := readTree(fsys)
	if err != nil {
		return nil, err
	}
	var found []Violation
	for _, file := range files {
		found = append(found, checkLayers(file)...)
		found = append(found, checkLibraries(file)...)
		found = append(found, checkTestOnly(file)...)
		found = append(found, checkAdapters(file)...)
		found = append(found, checkEnvironment(file)...)
		found = append(found, checkInit(file)...)
		found = append(found, checkDocs(file)...)
	}
	found = append(found, checkPackages(files)...)
	found = append(found, checkPlanes(files)...)
	slices.SortStableFunc(found, func(a, b Violation) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// checkLayers applies the layer table.
func checkLayers(file sourceFile) []Violation {
	var found []Violation
	for _, l := range layers {
		if !matchesAny(l.in, file.folder) || matchesAny(l.except, file.folder) || (file.test && !l.tests) {
			continue
		}
		for _, imported := range file.imports {
			if !l.allows(file.folder, imported) {
				found = append(found, Violation{"layer", file.path, fmt.Sprintf("imports %s: %s", imported, l.why)})
			}
		}
	}
	return found
}

// allows reports whether the layer lets a file of folder import something.
func (l layer) allows(folder, imported string) bool {
	below := module + "/" + folder
	if matches(below+"/...", imported) {
		return true
	}
	if matchesAny(l.deny, imported) {
		return false
	}
	switch {
	case isStandard(imported):
		return true
	case matches(module+"/...", imported):
		return l.own == nil || matchesAny(l.own, imported) || sameTree(l.in, folder, imported)
	default:
		return l.foreign == nil || matchesAny(l.foreign, imported)
	}
}

// sameTree reports whether an import stays inside the rule's folder that also
// holds the importing file: a layer may be split into packages.
func sameTree(in []string, folder, imported string) bool {
	for _, pattern := range in {
		if matches(pattern, folder) && matches(module+"/"+pattern, imported) {
			return true
		}
	}
	return false
}

// checkLibraries applies the table of third-party libraries.
func checkLibraries(file sourceFile) []Violation {
	var found []Violation
	for _, imported := range file.imports {
		for _, lib := range libraries {
			if !matches(lib.library, imported) {
				continue
			}
			allowed := matchesAny(lib.folders, file.folder) || (file.test && matchesAny(lib.tests, file.folder))
			if !allowed {
				found = append(found, Violation{
					"library", file.path,
					fmt.Sprintf("imports %s, which lives behind %s", imported, strings.Join(lib.folders, ", ")),
				})
			}
			break
		}
	}
	return found
}

// checkTestOnly keeps test code out of what is shipped.
func checkTestOnly(file sourceFile) []Violation {
	if file.test || isHarness(file.folder) {
		return nil
	}
	var found []Violation
	for _, imported := range file.imports {
		if matchesAny(testOnly, imported) {
			found = append(found, Violation{"test-only", file.path, "imports " + imported + ", which is for tests and harnesses"})
		}
	}
	return found
}

// adapters is the folder whose packages must not know each other.
const adapters = "server/internal/"

// checkAdapters keeps the server's adapters apart: the server root wires them.
func checkAdapters(file sourceFile) []Violation {
	rest, ok := strings.CutPrefix(file.folder+"/", adapters)
	if !ok {
		return nil
	}
	own, _, _ := strings.Cut(rest, "/")
	var found []Violation
	for _, imported := range file.imports {
		rest, ok := strings.CutPrefix(imported+"/", module+"/"+adapters)
		if !ok {
			continue
		}
		if other, _, _ := strings.Cut(rest, "/"); other != own {
			found = append(found, Violation{"adapter", file.path, fmt.Sprintf("adapter %s imports adapter %s: the server root wires them", own, other)})
		}
	}
	return found
}

// checkPlanes lets only the demo binary and harnesses see both planes' roots.
func checkPlanes(files []sourceFile) []Violation {
	sees := map[string]map[string]bool{} // folder → import → true
	for _, file := range files {
		if file.test || isHarness(file.folder) || matchesAny(bothPlanes, file.folder) {
			continue
		}
		for _, imported := range file.imports {
			if sees[file.folder] == nil {
				sees[file.folder] = map[string]bool{}
			}
			sees[file.folder][imported] = true
		}
	}
	var found []Violation
	for folder, imports := range sees {
		if imports[module+"/server"] && imports[module+"/gpuguard"] {
			found = append(found, Violation{"planes", folder, "imports both server and gpuguard: only cmd/holdfast and harnesses may"})
		}
	}
	return found
}

// checkPackages looks at each package's name and comment.
func checkPackages(files []sourceFile) []Violation {
	var found []Violation
	documented := map[string]bool{}
	for _, file := range files {
		if file.test {
			continue
		}
		name := file.ast.Name.Name
		documented[file.folder] = documented[file.folder] || hasPackageComment(file)
		if bannedNames[name] || bannedNames[path.Base(file.folder)] {
			found = append(found, Violation{"package-name", file.path, "package " + name + " says nothing about its concern: name it after what it holds"})
		}
	}
	for folder, ok := range documented {
		if !ok {
			found = append(found, Violation{"package-comment", folder, `no file has a package comment that starts with "Package name" or "Command name"`})
		}
	}
	return found
}

// hasPackageComment reports whether the file carries its package's comment.
func hasPackageComment(file sourceFile) bool {
	if file.ast.Doc == nil {
		return false
	}
	text := file.ast.Doc.Text()
	if file.generated {
		return text != ""
	}
	if file.ast.Name.Name == "main" {
		return strings.HasPrefix(text, "Command ")
	}
	return strings.HasPrefix(text, "Package "+file.ast.Name.Name)
}
