#!/usr/bin/env bash
# Runs the end-to-end suites: Go tests with the build tag e2e, and the browser
# suite of web/e2e where there is one. A missing program fails its test.
#
# usage: scripts/e2e.sh RUN      RUN narrows the Go tests by name, may be empty
set -euo pipefail
cd "$(dirname "$0")/.."

export HOLDFAST_REQUIRE=${HOLDFAST_REQUIRE:-postgres,chromium,prometheus,alertmanager}

ran=no
if [[ -f web/e2e/package.json ]]; then
    ran=yes
    npm --prefix web/e2e test
fi

status=0
scripts/tagged.sh e2e "${1:-}" -timeout 20m || status=$?
case $status in
0) ran=yes ;;
3) ;; # no Go suite
*) exit "$status" ;;
esac

if [[ $ran == no ]]; then
    echo 'e2e: NOT TESTED: no Go test has the build tag e2e and web/e2e has no suite' >&2
    exit 1
fi
