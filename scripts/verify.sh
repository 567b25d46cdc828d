#!/usr/bin/env bash
# Runs every generator and fails when a file changed by it: what is committed
# must be what the generators write. Works on a tree with other changes too: it
# compares before and after, not with the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."

# One line per file: its name and the hash of its content.
snapshot() {
    git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do
            if [[ -f $file ]]; then printf '%s\0' "$file"; fi
        done |
        xargs -0 -r sha256sum -- | sort -k 2
}

before=$(snapshot)
"${GO:-go}" generate ./...
after=$(snapshot)
if [[ $before != "$after" ]]; then
    echo 'verify: generated files were stale; they are rewritten now, commit them:' >&2
    diff <(printf '%s\n' "$before") <(printf '%s\n' "$after") | awk '/^[<>]/ { print "  " $3 }' | sort -u >&2
    exit 1
fi
echo 'verify: generated files are fresh'
