#!/usr/bin/env bash
# Installs what the make targets need and is missing; what is there is left
# alone, so it can be called every time.
#
# usage: scripts/deps.sh [GROUP...]      (all groups when none is named)
#
#   go        Go itself and the modules of the product
#   tools     the modules of the linters and generators (tools/go.mod), shellcheck
#   race      a C compiler, which go test -race needs
#   postgres  PostgreSQL's server programs
#   redis     Redis' server program
#   web       npm packages of the console (needs Node, which is not installed here)
#   e2e       Chromium, CJK fonts, Prometheus, Alertmanager, npm packages of web/e2e
#
# Debian packages are installed with apt-get, through sudo when not root. Their
# services are not started: tests start their own on free ports.
set -euo pipefail
cd "$(dirname "$0")/.."

# Vite, which builds the console, refuses older ones.
readonly node_min="20.19.0"

say() { printf 'deps: %s\n' "$*"; }
die() {
    printf 'deps: %s\n' "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# --- what is missing ---------------------------------------------------------

missing=() # Debian packages

# need PACKAGE CHECK...: notes PACKAGE when the check fails.
need() {
    local package=$1
    shift
    if ! "$@"; then
        missing+=("$package")
    fi
}

have_any() {
    local name
    for name in "$@"; do
        if have "$name"; then return 0; fi
    done
    return 1
}

have_compiler() {
    have gcc && printf '#include <stdlib.h>\nint main(void){return 0;}\n' | gcc -x c -o /dev/null - 2>/dev/null
}

have_postgres() {
    # Debian keeps the server programs out of PATH.
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || { have initdb && have postgres; }
}

have_cjk_fonts() {
    if have fc-list; then
        [[ -n $(fc-list :lang=ja file) ]]
    else
        compgen -G '/usr/share/fonts/opentype/noto/NotoSansCJK*' >/dev/null
    fi
}

# --- Debian packages ---------------------------------------------------------

as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        "$@"
    else
        sudo "$@"
    fi
}

# While the packages are installed a policy file keeps their services from being
# started. One that is there already (containers ship it) is left alone.
readonly policy=/usr/sbin/policy-rc.d
policy_is_ours=no

hold_services() {
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        policy_is_ours=yes
        as_root chmod 755 "$policy"
    fi
}

release_services() {
    if [[ $policy_is_ours == yes ]]; then
        as_root rm -f "$policy"
        policy_is_ours=no
    fi
}
trap release_services EXIT

# service_of PACKAGE: the unit that would start with the machine from now on.
service_of() {
    case $1 in
    postgresql) echo postgresql ;;
    redis-server) echo redis-server ;;
    prometheus) echo prometheus ;;
    prometheus-alertmanager) echo prometheus-alertmanager ;;
    esac
}

# keep_disabled PACKAGE...: what was installed for tests does not start at boot.
keep_disabled() {
    [[ -d /run/systemd/system ]] || return 0
    local package unit
    for package in "$@"; do
        unit=$(service_of "$package")
        if [[ -n $unit ]]; then
            say "service $unit stays off: tests start their own"
            as_root systemctl disable --quiet "$unit" || say "could not disable $unit; it may start at the next boot"
        fi
    done
}

install_missing() {
    if [[ ${#missing[@]} -eq 0 ]]; then return 0; fi
    say "missing: ${missing[*]}"
    have apt-get || die "no apt-get here: install the equivalent of these Debian packages by hand: ${missing[*]}"
    if [[ $(id -u) -ne 0 ]] && ! have sudo; then
        die "not root and no sudo: run as root: apt-get install --no-install-recommends ${missing[*]}"
    fi
    hold_services
    say "apt-get update"
    as_root apt-get update -qq || die "apt-get update failed: are the package sources reachable?"
    say "apt-get install ${missing[*]}"
    local log
    log=$(mktemp)
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0 install -y -qq --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        die "apt-get could not install: ${missing[*]}"
    fi
    rm -f "$log"
    release_services
    keep_disabled "${missing[@]}"
}

# --- Go and npm --------------------------------------------------------------

check_go() {
    have go || die "Go is missing: install Go 1.26.7 or newer (https://go.dev/doc/install)"
    # Asking for the version downloads the pinned toolchain where it is missing.
    go version >/dev/null || die "the Go toolchain '${GOTOOLCHAIN:-local}' cannot be had; see docs/adr/0003-pin-the-toolchain.md"
}

go_modules() {
    go mod download || die "go mod download failed: is the Go module proxy reachable?"
}

tool_modules() {
    go mod download -modfile=tools/go.mod || die "downloading the modules of tools/go.mod failed: is the Go module proxy reachable?"
}

version_at_least() { [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

# npm_packages FOLDER: npm ci, unless node_modules belongs to this very lock file.
npm_packages() {
    local folder=$1 stamp lock
    [[ -f $folder/package.json ]] || return 0
    if ! have node || ! have npm; then
        die "Node and npm are missing: install Node $node_min or newer for $folder"
    fi
    local node_version
    node_version=$(node --version)
    version_at_least "$node_min" "${node_version#v}" || die "Node $node_version is too old for $folder: $node_min or newer is needed"
    lock=$(sha256sum <"$folder/package-lock.json")
    stamp=$folder/node_modules/.installed-from
    if [[ -f $stamp && $(<"$stamp") == "$lock" ]]; then return 0; fi
    say "npm ci in $folder"
    # The browser comes from Debian, not from an npm package's download.
    (cd "$folder" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --loglevel=error) || die "npm ci failed in $folder"
    printf '%s\n' "$lock" >"$stamp"
}

# --- groups ------------------------------------------------------------------

# The checks of all groups come first, so that apt-get runs once.
debian_needs() {
    case $1 in
    go | web) ;;
    tools) need shellcheck have shellcheck ;;
    race)
        need gcc have_compiler
        need libc6-dev have_compiler
        ;;
    postgres) need postgresql have_postgres ;;
    redis) need redis-server have redis-server ;;
    e2e)
        need chromium have_any chromium chromium-browser google-chrome
        need fonts-noto-cjk have_cjk_fonts
        need prometheus have prometheus
        need prometheus-alertmanager have_any prometheus-alertmanager alertmanager
        ;;
    *) die "unknown group '$1'; groups: go tools race postgres redis web e2e" ;;
    esac
}

language_needs() {
    case $1 in
    go) go_modules ;;
    tools) tool_modules ;;
    web) npm_packages web ;;
    e2e) npm_packages web/e2e ;;
    esac
}

main() {
    local groups=("$@") group
    if [[ ${#groups[@]} -eq 0 ]]; then
        groups=(go tools race postgres redis web e2e)
    fi
    check_go
    for group in "${groups[@]}"; do debian_needs "$group"; done
    install_missing
    for group in "${groups[@]}"; do language_needs "$group"; done
    say "ready: ${groups[*]}"
}

main "$@"
