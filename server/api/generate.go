// Package api holds openapi.yaml, the source of truth of the HTTP interface,
// and generates the server's and the client's types from it.
package api

import _ "embed"

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config server.cfg.yaml openapi.yaml
//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config client.cfg.yaml openapi.yaml

// OpenAPI is the interface description as served at /api/v1/openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte
