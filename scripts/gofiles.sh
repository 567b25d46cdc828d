#!/usr/bin/env bash
# Lists, NUL-separated, the Go files that people write: tracked and new ones,
# without testdata and without what a generator wrote.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files -z --cached --others --exclude-standard -- '*.go' ':!:**/testdata/**' |
    while IFS= read -r -d '' file; do
        [[ -f $file ]] || continue # deleted, not yet committed
        if ! head -n 5 "$file" | grep -q '^// Code generated .* DO NOT EDIT\.$'; then
            printf '%s\0' "$file"
        fi
    done
