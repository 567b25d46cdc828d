#!/usr/bin/env bash
# Builds or checks the console. The server embeds web/dist; a committed
# placeholder page stands there until the console is built, so that Go alone is
# enough to build everything.
#
# usage: scripts/web.sh                 build; fails without Node
#        scripts/web.sh --if-possible   build where Node is; else say so and go on
#        scripts/web.sh --lint          Biome, types and unit tests of the console
set -euo pipefail
cd "$(dirname "$0")/.."

readonly stamp=bin/.console-built-from

# sources_hash changes with every file that goes into the bundle.
sources_hash() {
    find web -path web/node_modules -prune -o -path web/dist -prune -o -path web/e2e -prune -o -type f ! -name '*.go' -print0 |
        sort -z | xargs -0 sha256sum | sha256sum
}

build() {
    scripts/deps.sh web
    local hash
    hash=$(sources_hash)
    if [[ -f $stamp && -d web/dist && $(<"$stamp") == "$hash" ]]; then return 0; fi
    echo 'web: building the console'
    npm --prefix web run build
    mkdir -p bin
    printf '%s\n' "$hash" >"$stamp"
}

lint() {
    if ! command -v node >/dev/null; then
        echo 'lint: the console is NOT CHECKED: Node is missing' >&2
        [[ -z ${CI:-} ]]
        return
    fi
    scripts/deps.sh web
    npm --prefix web run lint
}

if [[ ! -f web/package.json ]]; then
    exit 0 # the console is served as plain embedded pages
fi
case ${1:-} in
'') build ;;
--if-possible)
    if command -v node >/dev/null && command -v npm >/dev/null; then
        build
    else
        echo 'web: Node is missing, so the console is only its placeholder page; install Node 20.19 or newer and run: make web' >&2
    fi
    ;;
--lint) lint ;;
*)
    echo "web: unknown option $1" >&2
    exit 2
    ;;
esac
