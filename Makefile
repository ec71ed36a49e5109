# quern: build, run, test. `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

GO       ?= go
PYTHON   ?= python3
CACHE    := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
BIN      := bin/quern
PKG      ?= ./...
FUZZTIME ?= 20s

# ---- C flags -----------------------------------------------------------------
# Go's build cache knows the flags but not the CPU behind -march=native, so its
# name and features are spelled out: a cache that moves to another CPU rebuilds.
# Every go command needs the same flags, or llama.cpp is compiled once more.
C_COMPILER := $(or $(shell $(GO) env CC 2>/dev/null),gcc)
ARCH       := $(shell uname -m)
ARM        := $(filter aarch64 arm64,$(ARCH))
ifeq ($(PORTABLE),1)
CPU_FLAGS  := $(if $(ARM),-march=armv8.2-a,-march=x86-64-v3)
else
CPU_FLAGS  := $(strip $(shell $(C_COMPILER) -march=native -E -v - </dev/null 2>&1 | grep -o ' -m[a-z0-9=.+_-]*' | tr -d '\n'))
# clang does not spell them out.
CPU_FLAGS  := $(or $(CPU_FLAGS),$(if $(ARM),-mcpu=native,-march=native))
endif
# ggml waits by OpenMP, for which cgo/team.cpp stands in; libgomp is not linked.
TEAM_FLAGS := $(if $(findstring Free Software Foundation,$(shell $(C_COMPILER) --version)),$(if $(filter Linux,$(shell uname -s)),-fopenmp -DGGML_USE_OPENMP))
C_FLAGS    := -O3 $(CPU_FLAGS) -DGGML_USE_CPU_REPACK $(TEAM_FLAGS)
export CGO_CFLAGS   := $(C_FLAGS)
export CGO_CXXFLAGS := $(C_FLAGS)

# ---- another llama.cpp -------------------------------------------------------
# LLAMA_CPP=DIR, or pip: that llama.cpp in place of the module's, built by cmake.
ifdef LLAMA_CPP
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -tags=llamacpp)
LAY_CURRENT = CPU_FLAGS="$(CPU_FLAGS)" NATIVE=$(if $(filter 1,$(PORTABLE)),OFF,ON) OPENMP=$(if $(TEAM_FLAGS),ON,OFF) \
	PYTHON=$(PYTHON) bash cgo/engine_current.sh "$(LLAMA_CPP)" "$(CACHE)/quern-llama.cpp"
endif

# ---- version -----------------------------------------------------------------
# Without .git (a tarball) the program says what the Go toolchain recorded.
VERSION ?= $(if $(wildcard .git),$(shell git describe --tags --always --dirty 2>/dev/null))
COMMIT  ?= $(if $(wildcard .git),$(shell git rev-parse HEAD 2>/dev/null))
LLAMA_COMMIT = $(shell sed -n 's/.*LLAMA_COMMIT = "\(.*\)";/\1/p' cgo/llama.cpp/../build-info.cpp 2>/dev/null)
# Read when used: the link that it looks behind is laid by deps.
LDFLAGS = -X 'main.version=$(VERSION)' -X 'main.commit=$(COMMIT)' -X 'main.llamaCommit=$(LLAMA_COMMIT)'

# ---- models ------------------------------------------------------------------
# Tests run in the folders of their packages.
ifdef QUERN_MODELS
export QUERN_MODELS := $(abspath $(QUERN_MODELS))
endif
FETCH      := $(PYTHON) -B models/fetch/fetch.py
FETCH_RUN  := $(FETCH) qwen2.5-coder-0.5b
FETCH_TEST := $(FETCH) smollm2-135m
MODEL_PATH := $(if $(MODEL),echo "$(MODEL)",$(FETCH_RUN))

.PHONY: help
help: ## list the targets
	@echo "usage: make TARGET [VARIABLE=value]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo "variables"
	@echo "  MODEL=FILE   the GGUF file of run and bench, in place of the default model"
	@echo "  ARGS=...     more flags for quern serve in run and bench"
	@echo "  BENCH_ARGS=  flags for one quern bench in bench, in place of the usual five runs"
	@echo "  PKG=./...    the packages of test, race, bench, bench-smoke, cover"
	@echo "  LLAMA_SERVER= path of the llama-server in bench-peers, in place of one built from a pinned llama.cpp"
	@echo "  OLLAMA=      path of ollama, or URL of one that runs, in bench-peers; else it is left out"
	@echo "  SUITE_ARGS=  more flags for quern bench suite in bench-peers"
	@echo "  SOAK=10m     how long each of the two loads of soak lasts"
	@echo "  FUZZTIME=20s how long each fuzz target runs"
	@echo "  LLAMA_CPP=   a folder with a current llama.cpp to build in, or pip: one that pip fetches"
	@echo "  PORTABLE=1   for any CPU of x86-64-v3 or armv8.2-a, not just this one"
	@echo "  QUERN_MODELS where models are kept; else $(CACHE)/quern"

# ---- build and run -----------------------------------------------------------
LLAMA := github.com/ollama/ollama
LLAMA_DIR := $(GO) list -m -f '{{.Dir}}' $(LLAMA)

.PHONY: deps
deps: ## download the modules, lay the links to the llama.cpp sources
	@for tool in $(GO) gcc g++; do command -v $$tool >/dev/null || \
		{ echo "make: $$tool is needed (Go 1.26, a C and a C++ compiler)" >&2; exit 1; }; done
	@if [ -z "$$($(LLAMA_DIR))" ]; then echo "downloading the Go modules"; $(GO) mod download; fi
	@lay() { [ "$$(readlink "$$2")" = "$$1" ] || { rm -rf "$$2"; ln -s "$$1" "$$2"; }; }; \
	dir=$$($(LLAMA_DIR)); \
	lay "$$dir/llama/llama.cpp" cgo/llama.cpp; \
	lay "$$dir/ml/backend/ggml/ggml" cgo/ggml
	@$(LAY_CURRENT)

.PHONY: build
build: deps ## build bin/quern
	@if $(GO) list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' ./cgo | grep -q $(LLAMA); then \
		echo "compiling llama.cpp: some minutes, once"; fi
	$(GO) build -ldflags "$(LDFLAGS)" -o $(BIN) .

.PHONY: model
model: ## fetch the default model (491 MB) unless it is there, print its path
	@$(MODEL_PATH)

.PHONY: test-model
test-model: ## fetch the model of the tests (98 MB) unless it is there, print its path
	@$(FETCH_TEST)

.PHONY: run
run: build ## serve the default model, or MODEL, on 127.0.0.1:8080
	@model=$$($(MODEL_PATH)); exec $(BIN) serve "$$model" $(ARGS)

# ---- tests -------------------------------------------------------------------
# Real models make some packages slow on few cores.
GOTEST := $(GO) test -timeout 20m

.PHONY: test
test: deps test-model ## vet, every test, then every test under the race detector
	$(PYTHON) -B -m unittest discover -s models/fetch
	$(GO) vet $(PKG)
	$(GOTEST) $(PKG)
	$(GOTEST) -race $(PKG)

.PHONY: race
race: deps test-model ## every test under the race detector
	$(GOTEST) -race $(PKG)

ASAN_FLAGS := -O1 -g -fno-omit-frame-pointer $(CPU_FLAGS) -DGGML_USE_CPU_REPACK $(TEAM_FLAGS)

.PHONY: asan
asan: export CGO_CFLAGS := $(ASAN_FLAGS)
asan: export CGO_CXXFLAGS := $(ASAN_FLAGS)
asan: export LSAN_OPTIONS := suppressions=$(CURDIR)/cgo/lsan.supp:print_suppressions=0
asan: deps test-model ## the tests of cgo with C, C++ and Go under AddressSanitizer
	@# -o keeps the symbols, by which the leak check knows what to pass over.
	$(GOTEST) -asan -o bin/cgo.asan.test ./cgo

SOAK ?= 10m

.PHONY: soak
soak: export SOAK := $(SOAK)
soak: deps test-model ## random load with cancels on a scripted and a real model: right answers, flat memory
	$(GO) test -race -run '^TestSoak' -v -count=1 -timeout 24h ./server
	$(GO) test -run '^TestSoak' -v -count=1 -timeout 24h .

.PHONY: fuzz
fuzz: deps ## each fuzz target for FUZZTIME
	@grep -rEo '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | while IFS=: read -r file func; do \
		echo "$${func#func } in $$(dirname "$$file")"; \
		$(GO) test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null; \
	done

.PHONY: cover
cover: deps test-model ## the tests with coverage: cover.out, and a line a function
	$(GOTEST) -coverpkg=./... -coverprofile=cover.out $(PKG)
	$(GO) tool cover -func=cover.out

# ---- benchmarks --------------------------------------------------------------
BENCH_ADDR := 127.0.0.1:18080
BENCH_ARGS ?=

# What make bench measures, unless BENCH_ARGS says something else: one stream
# and eight, eight that share a head, conversations, a stream beside a long prompt.
define BENCH_RUNS
--concurrency 1 --requests 8
--concurrency 8 --requests 32
--dataset shared-prefix --concurrency 8 --requests 8
--dataset multi-turn --sessions 12 --turns 3 --concurrency 4 --requests 36
--scenario stall --prompt-words 1000 --max-tokens 256
endef
export BENCH_LIST := $(or $(BENCH_ARGS),$(BENCH_RUNS))

.PHONY: bench
bench: build ## the Go benchmarks, then quern bench against a server of its own
	$(GO) test -run '^$$' -bench . -benchmem $(PKG)
	@model=$$($(MODEL_PATH)); \
	$(BIN) serve --addr $(BENCH_ADDR) --log-level warn "$$model" $(ARGS) & server=$$!; \
	trap 'kill $$server 2>/dev/null; wait $$server' EXIT; \
	until $(PYTHON) -c 'import urllib.request as u; u.urlopen("http://$(BENCH_ADDR)/health")' 2>/dev/null; do \
		kill -0 $$server; sleep 0.3; done; \
	while read -r run; do \
		echo; echo "quern bench $$run"; \
		$(BIN) bench --url http://$(BENCH_ADDR) $$run </dev/null; \
	done <<<"$$BENCH_LIST"

# The peers of bench-peers. Unset, llama-server is built; set to nothing, or
# where that fails, it is left out, as Ollama is.
OLLAMA ?=
SUITE_ARGS ?=

.PHONY: bench-peers
bench-peers: build ## quern beside llama-server and Ollama: a table of all works
	@model=$$($(MODEL_PATH)); \
	$(if $(filter undefined,$(origin LLAMA_SERVER)),llama=$$(PYTHON=$(PYTHON) bash server/bench/llama_server.sh "$(CACHE)/quern-llama.cpp") || llama=;,llama="$(LLAMA_SERVER)";) \
	$(BIN) bench suite "$$model" --llama-server "$$llama" --ollama "$(OLLAMA)" --out bin/bench-peers.md $(SUITE_ARGS)

.PHONY: bench-smoke
bench-smoke: deps test-model ## each benchmark once: it still runs
	$(GO) test -run '^$$' -bench . -benchtime=1x $(PKG)
	$(GO) test -count=1 ./server/bench/...

# ---- order -------------------------------------------------------------------
# Built outside the checkout and pinned: new linters come when asked for.
LINT_VERSION := v2.15.0
LINT := $(CACHE)/quern-tools/golangci-lint-$(LINT_VERSION)/golangci-lint

$(LINT):
	@echo "building golangci-lint $(LINT_VERSION): some minutes, once"
	CGO_ENABLED=0 GOBIN=$(dir $@) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

.PHONY: lint
lint: deps $(LINT) ## golangci-lint with .golangci.yml: rules, import directions, gofmt
	$(LINT) run $(PKG)

.PHONY: fmt
fmt: ## gofmt everything
	gofmt -s -w .

.PHONY: tidy-check
tidy-check: ## fail if go.mod or go.sum are not tidy
	$(GO) mod tidy -diff

.PHONY: presubmit
presubmit: tidy-check lint test bench-smoke ## what CI runs

.PHONY: clean
clean: ## remove what was built here; models and the Go caches stay
	rm -rf bin cover.out cgo/llama.cpp cgo/ggml cgo/current cgo/engine_build.h
	find . -name '*.test' -type f -delete
