// Package web holds the console: its TypeScript sources, the bundle that is
// built from them and embedded here, and the handler that serves it. Nothing in
// it knows the server; the console speaks to the HTTP API like any other client.
package web

import (
	"embed"
	"io/fs"
)

// embedded holds what was in the two folders when the program was compiled.
// dist is empty but for .gitkeep until the console is built, so that Go alone
// builds everything; placeholder says how to build it.
//
//go:embed all:dist all:placeholder
var embedded embed.FS

// Built reports whether this program contains the console rather than only its
// placeholder page.
func Built() bool {
	_, err := fs.Stat(embedded, "dist/"+indexFile)
	return err == nil
}

// embeddedBundle is the console where it was built, else the placeholder.
func embeddedBundle() fs.FS {
	folder := "placeholder"
	if Built() {
		folder = "dist"
	}
	bundle, err := fs.Sub(embedded, folder)
	if err != nil {
		return embed.FS{} // fs.Sub fails on invalid names only, and these two are constants
	}
	return bundle
}
