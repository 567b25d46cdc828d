package runbooks

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a runbook file, for editors:
// "# yaml-language-server: $schema=…" in the first line names it. It checks shape
// and keys; Parse also checks what stands in relation to each other.
func Schema() []byte { return slices.Clone(schema) }
