#!/usr/bin/env bash
# Runs every fuzz target for a while; go test takes one target at a time.
#
# usage: scripts/fuzz.sh DURATION       for example 15s
set -euo pipefail
cd "$(dirname "$0")/.."

readonly duration=${1:?usage: scripts/fuzz.sh DURATION}
found=0
while IFS=: read -r file target; do
    found=1
    echo "fuzz: $target in $(dirname "$file") for $duration"
    "${GO:-go}" test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "$(dirname "$file")"
done < <(grep -roE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9_]*' . | sed 's/:func /:/' | sort)

if [[ $found -eq 0 ]]; then
    echo 'fuzz: no fuzz target found' >&2
    exit 1
fi
