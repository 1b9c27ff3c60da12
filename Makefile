# Sora for Swift. `make help` lists the targets; README.md explains the common jobs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON := $(CURDIR)/.venv/bin/python
TEST_ENV := SORA_TEST_PYTHON=$(PYTHON)
# The API examples are the specification's text and stay as they were given.
SOURCES = $(shell git ls-files '*.swift' ':!*/api-examples.swift')

.PHONY: help setup demo test test-fast test-one test-interop test-no-media test-deep bench format lint docs clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

setup: ## installs what building and testing need (apt, a Python environment)
	@scripts/setup.sh test

demo: ## builds release, then a real clip through a local server, recorded to demo/ (INPUT=FILE for your own)
	@scripts/setup.sh demo
	@scripts/demo.sh $(if $(INPUT),--input "$(INPUT)")

test: ## set-up, then every test: unit, API, real peers (Python SDK, Chromium, coturn), without the Media trait
	@scripts/setup.sh test
	@$(TEST_ENV) scripts/test.sh all

test-fast: ## the tests without browsers and Python
	@scripts/setup.sh demo
	@scripts/test.sh fast

test-one: ## one module's tests: make test-one MODULE=SoraSCTP
	SORA_ONLY=$(MODULE) swift test

test-interop: ## only the tests against real peers
	@scripts/setup.sh test
	@$(TEST_ENV) scripts/test.sh interop

test-no-media: ## the package without the Media trait
	@scripts/setup.sh build
	@scripts/test.sh no-media

test-deep: ## unit tests under the address and leak sanitizers, the concurrent ones under the thread sanitizer
	@scripts/setup.sh test
	@$(TEST_ENV) scripts/test.sh deep

bench: ## figures of ours and of peers, as ratios in one run
	@scripts/setup.sh bench
	@$(TEST_ENV) scripts/bench.sh

format: ## formats the Swift sources
	@swift format -i --configuration .swift-format $(SOURCES)

lint: ## checks format and the architecture's rules
	@swift format lint --strict --configuration .swift-format $(SOURCES)
	swift test --filter ArchitectureTests

docs: ## builds the DocC documentation into .build/docs
	scripts/docs.sh

clean: ## removes build output
	rm -rf .build .build-* demo
