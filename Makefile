PYTHON ?= python3
BIN := .venv/bin
QUICK := $(addprefix --ignore tests/,controlplane differential e2e deploy)

.DEFAULT_GOAL := help
.PHONY: help demo test check unit cluster golden lock clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

demo: .venv/installed ## Watch a 16 GiB VM get its node on a simulated cluster
	$(BIN)/rebalancer demo

test: check ## Everything that a change must pass, the real control plane included
	$(BIN)/python -m pytest

check: .venv/installed ## Format, lint, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p rebalancer -p rebalancer_strategies -p tests -p benchmarks
	$(BIN)/lint-imports --no-cache

unit: .venv/installed ## The quick tests only: no control plane, no build
	$(BIN)/python -m pytest $(QUICK)

cluster: .venv/installed ## Start the tests' control plane by hand, with the demo's VMs and Jaeger
	$(BIN)/python -m tests.controlplane --jaeger

golden: .venv/installed ## Rewrite the golden files; look at the diff before you commit it
	UPDATE_GOLDEN=1 $(BIN)/python -m pytest $(QUICK)

lock: .venv/installed ## Pin the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile --python-version 3.11 --universal --generate-hashes --no-header --upgrade -q \
		-o requirements.lock pyproject.toml
	$(BIN)/uv pip compile --python-version 3.11 --universal --generate-hashes --no-header --upgrade -q --group dev \
		-o requirements-dev.lock pyproject.toml

clean: ## Remove the virtual environment and all caches of the tree
	rm -rf .venv .typing build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/installed: requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one with PYTHON=...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install -q --no-deps -e .
	mkdir -p .typing && ln -sfn ../strategies .typing/rebalancer_strategies
	touch $@
