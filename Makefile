# Everything a developer or a pipeline does with holdfast. `make` lists it.

# The toolchain is pinned: net/http of Go 1.26.8 has published HTTP/2 and CONNECT
# vulnerabilities, and both planes of this product serve HTTP. Plain `go build
# ./...` with the Go that go.mod names keeps working; what is shipped and tested
# is built with this one. See docs/adr/0003-pin-the-toolchain.md.
export GOTOOLCHAIN := go1.27.3

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := bin
GO ?= go

# --- build stamp ------------------------------------------------------------
# The date is the commit's, so that the same sources give the same binary.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DATE ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X holdfast/version.Version=$(VERSION) -X holdfast/version.Commit=$(COMMIT) -X holdfast/version.Date=$(DATE)

COMMANDS := $(notdir $(patsubst %/,%,$(dir $(wildcard cmd/*/main.go))))

# --- test settings ----------------------------------------------------------
# testreport shows skipped tests, which plain go test hides. With NO_SKIPS=1 (as
# in CI) a skip that .ci/allowed-skips does not name is a failure.
TESTREPORT = $(GO) run ./internal/testreport $(if $(NO_SKIPS),-no-skips -allow .ci/allowed-skips)
# RUN narrows: make test RUN=TestC44 PKG=./server/alert/...
PKG ?= ./...
RUN ?=
runflag = $(if $(RUN),-run '$(RUN)')
FUZZTIME ?= 15s

# Packages with benchmarks.
benchmarked = $(sort $(patsubst %,./%,$(shell git ls-files -co --exclude-standard -- '*_test.go' | xargs -r grep -l '^func Benchmark' | xargs -r -n 1 dirname)))

##@ Start here

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Build and start the whole demo; ARGS="--help" passes flags
	@scripts/deps.sh go
	@$(MAKE) --no-print-directory web-if-possible $(BIN)/holdfast $(BIN)/changecheck
	@exec $(BIN)/holdfast demo $(ARGS)

.PHONY: deps
deps: ## Install what is missing: Debian packages, npm packages, Go modules
	@scripts/deps.sh

##@ Build

.PHONY: build
build: ## Static binaries of every command into bin/
build: web-if-possible $(addprefix $(BIN)/,$(COMMANDS))

# Go's own cache decides what is stale, so the link step is always asked.
.PHONY: $(addprefix $(BIN)/,$(COMMANDS))
$(addprefix $(BIN)/,$(COMMANDS)): $(BIN)/%:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/$*

.PHONY: web
web: ## Build the console with Node into web/dist
	@scripts/web.sh

.PHONY: web-if-possible
web-if-possible:
	@scripts/web.sh --if-possible

.PHONY: generate
generate: ## Run every code generator
	$(GO) generate ./...

.PHONY: clean
clean: ## Remove what was built here
	rm -rf $(BIN) coverage.out coverage.html
	find web/dist -mindepth 1 ! -name .gitkeep -delete 2>/dev/null || true

##@ Test

.PHONY: test
test: ## All tests with the race detector, on SQLite and PostgreSQL (PKG=, RUN=)
	@scripts/deps.sh go race postgres
	CGO_ENABLED=1 $(GO) test -json -race -count=1 -timeout 14m $(runflag) $(PKG) | $(TESTREPORT)
ifeq ($(PKG)$(RUN),./...)
	@# With the race detector only one test of each rule file is played: all of them take minutes.
	CGO_ENABLED=0 $(GO) test -json -count=1 -run '^TestRules' ./server/internal/prom/embedded | $(TESTREPORT)
endif

.PHONY: test-short
test-short: ## Fast tests only: no race detector, no PostgreSQL, cached results
	$(GO) test -short $(runflag) $(PKG)

.PHONY: e2e
e2e: ## End to end with a real browser, Prometheus and Alertmanager
	@scripts/deps.sh go postgres web e2e
	@$(MAKE) --no-print-directory build
	@GO='$(GO)' TESTREPORT='$(TESTREPORT) -figures' scripts/e2e.sh '$(RUN)'

.PHONY: e2e-kube
e2e-kube: ## The tier that needs a Kubernetes control plane
	@if [[ ! -f deploy/e2e/kube/go.mod ]]; then \
		echo 'make e2e-kube: NOT TESTED: there is no Kubernetes suite in this tree; it arrives in deploy/e2e/kube together with its control plane' >&2; \
		exit 1; \
	fi
	cd deploy/e2e/kube && $(GO) test -json -count=1 -timeout 30m ./... | (cd '$(CURDIR)' && $(TESTREPORT))

.PHONY: bench
bench: ## Benchmarks with allocations (BENCH=pattern); compare runs with bin/tools/benchstat
	@packages='$(benchmarked)'; \
	if [[ -z $$packages ]]; then echo 'make bench: no package has a benchmark' >&2; exit 1; fi; \
	$(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem $$packages

.PHONY: soak
soak: ## Long tests under load (build tag soak)
	@scripts/deps.sh go race postgres
	@status=0; \
	GO='$(GO)' TESTREPORT='$(TESTREPORT)' CGO_ENABLED=1 scripts/tagged.sh soak '$(RUN)' -race -timeout 2h || status=$$?; \
	if [[ $$status -eq 3 ]]; then echo 'make soak: NOT TESTED: no test has the build tag soak' >&2; fi; \
	exit $$status

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZTIME (15s)
	@GO='$(GO)' scripts/fuzz.sh $(FUZZTIME)

##@ Check

.PHONY: lint
lint: ## Format, vet, golangci-lint, console and shell linters, fresh generated code
lint: lint-go lint-web lint-shell verify

.PHONY: lint-go
lint-go: $(BIN)/tools/gofumpt $(BIN)/tools/golangci-lint
	@unformatted=$$(scripts/gofiles.sh | xargs -0 $(BIN)/tools/gofumpt -l); \
	if [[ -n $$unformatted ]]; then printf 'not gofumpt-formatted (run: make fmt):\n%s\n' "$$unformatted" >&2; exit 1; fi
	$(GO) vet -tags e2e,soak ./...
	$(BIN)/tools/golangci-lint config verify
	$(BIN)/tools/golangci-lint run ./...

.PHONY: lint-web
lint-web:
	@scripts/web.sh --lint

.PHONY: lint-shell
lint-shell:
	@if command -v shellcheck >/dev/null; then \
		shellcheck .ci/run scripts/*.sh; \
	else \
		echo 'lint: shell scripts NOT CHECKED: shellcheck is missing (make deps installs it)' >&2; \
		[[ -z $${CI:-} ]]; \
	fi

.PHONY: verify
verify: ## Fail when a generator would change a file
	@GO='$(GO)' scripts/verify.sh

.PHONY: fmt
fmt: ## Format the Go sources with gofumpt
fmt: $(BIN)/tools/gofumpt
	@scripts/gofiles.sh | xargs -0 $(BIN)/tools/gofumpt -w

.PHONY: vuln
vuln: ## Known vulnerabilities in what is called (asks the Go vulnerability database)
vuln: $(BIN)/tools/govulncheck
	$(BIN)/tools/govulncheck ./...

# --- tools, pinned in tools/go.mod and built once ---------------------------
tool_golangci-lint := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
tool_gofumpt := mvdan.cc/gofumpt
tool_benchstat := golang.org/x/perf/cmd/benchstat
tool_govulncheck := golang.org/x/vuln/cmd/govulncheck

$(BIN)/tools/%: tools/go.mod tools/go.sum
	@test -n '$(tool_$*)' || { echo 'no such tool: $*' >&2; exit 1; }
	CGO_ENABLED=0 $(GO) build -modfile=tools/go.mod -o $@ $(tool_$*)
