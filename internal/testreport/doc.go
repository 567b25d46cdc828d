// Command testreport reads `go test -json` from standard input and prints what a
// person needs: go test's own closing line of each package, the full output of
// what failed, every skipped test with its reason, and a tally. Plain go test
// hides skips, so a suite that never ran looks like one that passed.
//
// usage: go test -json ./... | go run ./internal/testreport [-no-skips] [-allow FILE]
//
// It exits 1 when a test or a build failed, when no test ran, when the input is
// not go test's, and, with -no-skips, when a test was skipped that FILE does not
// allow. FILE holds one `package-path regexp` and `test-name regexp` per line,
// separated by spaces; # starts a comment.
package main
