.DEFAULT_GOAL := help
.PHONY: help setup environment setup-site setup-ui setup-bench run test test-fast test-ui test-cluster laws model lint \
	lint-style lint-types lint-imports lint-contracts format docs site bench clean
SHELL := /bin/sh

BIN := .venv/bin
BLOGDATA := $(BIN)/blogdata
LOGS ?=
LANDING ?=
BEGIN ?=
ARGS ?=
JOBS ?= 2
STEPS ?= 10000
# Where tests write: into memory, when there is enough of it.
SCRATCH ?= $(shell [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $$4}')" -gt 8388608 ] 2>/dev/null \
	&& echo /dev/shm || echo "$${TMPDIR:-/tmp}")
# The tests start a hundred processes: each imports in half the time what one of them has compiled, also where the
# environment says that no bytecode is to be written into folders of sources.
PYTEST = env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX="$(CURDIR)/.venv/bytecode" \
	PYTEST_DEBUG_TEMPROOT=$(SCRATCH) $(BIN)/python -m pytest
# Where the data goes; BLOGDATA_HOME is exported to everything that runs below.
BLOGDATA_HOME ?= $(CURDIR)/var
export BLOGDATA_HOME
ifneq ($(LANDING),)
export BLOGDATA_LANDING := $(abspath $(LANDING))
endif

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: environment ## Make .venv, and that of the analytics team, from their uv.lock (does nothing when they are current)
	@sh platform/blogdata/deploy/environment.sh --project analytics

environment:
	@sh platform/blogdata/deploy/environment.sh

setup-site:
	@sh platform/blogdata/deploy/environment.sh site

setup-ui:
	@sh platform/blogdata/deploy/environment.sh ui

setup-bench:
	@sh platform/blogdata/deploy/environment.sh bench

run: setup ## Run the main job: simulated visits (BEGIN=day), or LOGS=access.log for your own, or LANDING=dir
	@set -e; \
	if [ -n "$(LOGS)" ]; then $(BLOGDATA) land logs $(LOGS); \
	elif [ -z "$(LANDING)" ] && [ ! -e "$${BLOGDATA_LANDING:-$$BLOGDATA_HOME/landing}/_truth/spec.json" ]; then \
		$(BLOGDATA) land simulate --days 3 --visits-per-day 100000 --seed 7 $(if $(BEGIN),--begin $(BEGIN)); \
	fi; \
	$(BLOGDATA) run

test-fast: setup ## What needs no Spark: readers, planner, texts; within a minute
	@$(PYTEST) -n $(JOBS) tests/unit $(ARGS)

test: setup ## Lint beside the suite, which runs in JOBS processes (ARGS="-k name" narrows it; make laws has the rest)
	@make --no-print-directory lint & lint=$$!; \
	$(PYTEST) -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS); tests=$$?; \
	wait $$lint && exit $$tests

test-ui: setup setup-ui ## Use Dagster's UI in a real Chromium (UI_PICTURES=folder keeps its pictures there)
	@$(BIN)/python -m pytest -m ui $(ARGS)

laws: setup ## All that the suite tries a part of: every law for every writer, every pair of operations, campaigns
	@WHOLE_MATRIX=1 $(PYTEST) -m "campaign or matrix" \
		-n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

model: setup ## Do anything in any order to a lineage, for long: STEPS=10000 against plain Python
	@WHOLE_MATRIX=1 MODEL_STEPS=$(STEPS) $(BIN)/python -m pytest -s -m campaign tests/laws/test_model.py $(ARGS)

test-cluster: setup ## The core of the tests on a Spark standalone cluster of two workers
	@BLOGDATA_TEST_WORKERS=2 $(BIN)/python -m pytest tests/table tests/ledger tests/landing tests/patterns \
		tests/lineage/test_truth.py $(ARGS)

lint: setup ## Ruff, mypy, the import contract, and the contracts against their released schemas, side by side
	@make --no-print-directory -j $(JOBS) lint-types lint-style lint-imports lint-contracts

lint-style:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

lint-types:
	@$(BIN)/mypy

lint-imports:
	@report=$$($(BIN)/lint-imports --no-logo 2>&1) || { printf '%s\n' "$$report"; exit 1; }

lint-contracts:
	@report=$$($(BLOGDATA) schema check) || { printf '%s\n' "$$report"; exit 1; }

format: setup ## Let ruff format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: setup ## Write the generated pages: patterns, contracts, commands, the lineage
	@$(BIN)/python -m tools.docs

site: setup-site ## Build the documentation as a site that needs no network, into build/site (a dead link ends it)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

bench: setup setup-bench ## Measure what the platform costs, beside hand-written peers (ARGS=audited_write picks one)
	@$(BIN)/python -m benchmarks $(ARGS)

clean: ## Remove the environment and caches; data in var/ stays
	rm -rf .venv analytics/.venv .uv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
