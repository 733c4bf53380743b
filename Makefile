# `make` alone prints this help. ARGS are passed on, as in: make demo ARGS="--orders 50"
.DEFAULT_GOAL := help
SHELL := /bin/bash

PACKAGES ?= ./...
# Packages share one Postgres and the machine: two at a time.
TEST := go run ./internal/testrun go test -p 2 -timeout 20m

.PHONY: help setup build demo test race cluster mutants lint platforms fmt generate bench bench-peers bench-growth soak versions clean sdk-python

help: ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## put Postgres and PGMQ on this machine (every target does it when they are missing)
	@scripts/setup

build: ## bin/pawl, bin/orchestrator, bin/worker
	go build -o bin/ ./cmd/...

demo: setup build ## orders through workers in Go, Python and TypeScript, killed on the way, with proof at the end
	@scripts/setup demo
	bin/pawl demo $(ARGS)

test: setup ## go vet and all tests (PACKAGES=./workflow/... for some)
	go vet $(PACKAGES)
	$(TEST) $(ARGS) $(PACKAGES)

race: setup ## all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(TEST) -race $(ARGS) $(PACKAGES)

cluster: setup ## several instances on one database: the seeds' scenarios, then under fire (PAWL_SEED=1 PAWL_FIRE=5m)
	$(TEST) -count 1 -v $(ARGS) ./test/cluster/...

mutants: setup ## deliberate defects, each against the tests that should find it; writes docs/mutants.md (an hour)
	go run ./internal/testrun go run ./test/mutants $(ARGS)

lint: ## golangci-lint, and the rules of the house
	@linter=$$(scripts/setup lint) && $$linter run $(PACKAGES)
	go test ./internal/lint

platforms: ## everything builds for macOS, and what Windows is promised for Windows
	GOOS=darwin GOARCH=arm64 go build ./...
	GOOS=windows GOARCH=amd64 go build ./cmd/... ./client/... ./worker/... ./workflow/... ./actors/... ./messaging/...

fmt: ## format the Go files
	@gofmt -l -w $$(git ls-files -co --exclude-standard '*.go')

generate: ## write what is derived: transitions, schemas, the functions' number
	go generate $(PACKAGES)

bench: setup build ## throughput and latency beside raw PGMQ, and the change since docs/benchmarks.csv (two minutes)
	cd test/bench && go run . -short $(ARGS)

bench-peers: setup build ## the whole table with peers, written to docs/benchmarks.md (an hour and a half; needs Node 20)
	cd test/bench && go run . -reps 5 -rates 1,10,100,max -out ../../docs $(ARGS)

bench-growth: setup build ## Pawl in a full database, written to docs/growth.md (ARGS="-hold 5m -steady 1h")
	cd test/bench && go run . -growth -reps 5 -out ../../docs $(ARGS)

soak: setup ## a cluster under fire, Postgres included (DURATION=1h SEED=1 ARGS="-out docs/soak.md")
	@scripts/setup soak
	go run ./test/soak $(if $(DURATION),-duration $(DURATION)) $(if $(SEED),-seed $(SEED)) $(ARGS)

replay: setup ## the plan of an earlier soak again (PLAN=soak-1.jsonl)
	@scripts/setup soak
	go run ./test/soak -plan $(PLAN) $(ARGS)

clean: ## remove what make built
	rm -rf bin

versions: setup ## the SQL's tests on Postgres 16, 17 and 18 (ARGS="18 ./sql ./test/crash"; Linux on x86-64)
	scripts/versions $(ARGS)

.PHONY: sdk-typescript conformance throughput examples

sdk-typescript: setup ## build and test the TypeScript SDK
	sdk/typescript/run-tests

conformance: setup build ## workers of all languages through their paces (ARGS=--markdown: the table of docs/conformance.md)
	scripts/conformance $(ARGS)

throughput: setup ## steps per second of one worker process in Go, Python and TypeScript (ARGS="--steps 20000")
	scripts/throughput $(ARGS)

examples: setup build ## run the examples: PGMQ's official JavaScript client, Ruby, bash, HTTP
	scripts/examples $(ARGS)

sdk-python: setup build ## tests of the Python SDK, with a worker's process and the examples (ARGS="-k transfer")
	sdk/python/run-tests $(ARGS)
