package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
)

// environmentCalls are the functions of os that read the environment.
var environmentCalls = map[string]bool{"Getenv": true, "LookupEnv": true, "Environ": true, "ExpandEnv": true}

// checkEnvironment keeps flags and environment in the commands: everything else
// gets options.
func checkEnvironment(file sourceFile) []Violation {
	if file.test || matchesAny(readsEnvironment, file.folder) {
		return nil
	}
	const why = "only cmd/ reads flags and environment: pass an option"
	var found []Violation
	for _, imported := range file.imports {
		if imported == "flag" || imported == "github.com/spf13/pflag" {
			found = append(found, Violation{"environment", file.path, "imports " + imported + ": " + why})
		}
	}
	osName := importName(file.ast, "os")
	ast.Inspect(file.ast, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok || osName == "" {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == osName && environmentCalls[selector.Sel.Name] {
			found = append(found, Violation{"environment", file.path, "calls os." + selector.Sel.Name + ": " + why})
		}
		return true
	})
	return found
}

// importName returns the name a file uses for an import, "" without it.
func importName(file *ast.File, imported string) string {
	for _, spec := range file.Imports {
		if spec.Path.Value != `"`+imported+`"` {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(imported)
	}
	return ""
}

// checkInit refuses init functions: what runs at import time cannot be injected.
func checkInit(file sourceFile) []Violation {
	if file.test || file.generated || matchesAny(hasInit, file.folder) {
		return nil
	}
	var found []Violation
	for _, decl := range file.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, Violation{"init", file.path, "has an init function: do the work in a constructor"})
		}
	}
	return found
}

// checkDocs wants a doc comment on every exported function, method, type,
// constant and variable.
func checkDocs(file sourceFile) []Violation {
	if file.test || file.generated {
		return nil
	}
	var found []Violation
	missing := func(kind, name string) {
		found = append(found, Violation{"doc", file.path, fmt.Sprintf("exported %s %s has no doc comment", kind, name)})
	}
	for _, decl := range file.ast.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Doc == nil && decl.Name.IsExported() && exportedReceiver(decl) {
				missing("function", decl.Name.Name)
			}
		case *ast.GenDecl:
			checkGroup(decl, missing)
		}
	}
	return found
}

// checkGroup looks at the names of one type, const or var declaration. The
// comment of a group in parentheses covers constants and variables that say
// enough by their names; types each need their own.
func checkGroup(decl *ast.GenDecl, missing func(kind, name string)) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			own := spec.Doc != nil || (decl.Doc != nil && !decl.Lparen.IsValid())
			if spec.Name.IsExported() && !own {
				missing("type", spec.Name.Name)
			}
		case *ast.ValueSpec:
			if spec.Doc != nil || spec.Comment != nil || decl.Doc != nil {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					missing(kindOf(decl.Tok), name.Name)
				}
			}
		}
	}
}

// kindOf names a declaration for a message.
func kindOf(tok token.Token) string {
	if tok == token.CONST {
		return "constant"
	}
	return "variable"
}

// exportedReceiver reports whether a function is no method or a method of an
// exported type.
func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	expr := fn.Recv.List[0].Type
	for {
		switch t := expr.(type) {
		case *ast.StarExpr:
			expr = t.X
		case *ast.IndexExpr:
			expr = t.X
		case *ast.IndexListExpr:
			expr = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return true
		}
	}
}
