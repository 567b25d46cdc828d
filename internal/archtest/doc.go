// Package archtest holds the rules of this repository that no compiler checks:
// who may import whom, where flags and environment are read, which package names
// are banned, and what must carry a comment. Its test runs them over the sources.
//
// The rules look at *direct* imports of every file, whatever its build tags. A
// rule over all dependencies would punish a package for what its neighbours use.
//
// To change a rule, change its line in the tables of rules.go and the same line
// of depguard in .golangci.yml, and say why in a record under docs/adr.
package archtest
