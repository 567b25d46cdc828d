#!/usr/bin/env bash
# Runs the tests that live in files with one build tag, and only those: the other
# tests of their packages belong to `make test`.
#
# usage: scripts/tagged.sh TAG RUN FLAG...    RUN narrows by test name, may be empty
# Exit status 3 means that no test has the tag.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly go=${GO:-go} tag=$1 run=$2
shift 2
read -ra testreport <<<"${TESTREPORT:-$go run ./internal/testreport}"

mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*_test.go' |
    xargs -r grep -lE "^//go:build $tag\$" || true)
if [[ ${#files[@]} -eq 0 ]]; then exit 3; fi

mapfile -t packages < <(printf '%s\n' "${files[@]}" | xargs -n 1 dirname | sort -u | sed 's|^|./|')
names=$(grep -hoE '^func Test[A-Za-z0-9_]*\(t ' "${files[@]}" | sed -E 's/^func (.*)\(t /\1/' | paste -sd '|')

"$go" test -json -tags "$tag" -count=1 -run "${run:-^($names)\$}" "$@" "${packages[@]}" | "${testreport[@]}"
