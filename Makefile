# `make demo` and `make test` set up everything they need in .venv, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := runs/demo

COMPARED ?= recoup recoup:window=1 iw-pgpe-ob cma-es cma-es:popsize=half lq-cma-es snes snes:popsize=half \
	evosax-pgpe:lr=0.3 evosax-open-es:lr=3 optuna-tpe optuna-cma-es
RUNS ?= 30
EPISODES ?= 400

.PHONY: help demo test slow lint bench reproduce compare clean

help:
	@echo "make demo      train on the mountain car; ends with a table and a picture"
	@echo "make test      run the test suite, but for what takes long"
	@echo "make slow      run what takes long: kills, coverage, a cluster, whole reproductions"
	@echo "make lint      lint, format check, types"
	@echo "make bench     print the benchmark figures beside their targets"
	@echo "make reproduce the paper's figures and claims in ten minutes; ends in a page"
	@echo "make compare   methods on the whole suite; hours, says how many, goes on where it was"
	@echo "make clean     remove .venv and caches"

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "recoup needs Python 3.11 or newer; name one with make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/bench-installed: $(VENV)/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

demo: $(VENV)/installed
	@rm -rf $(DEMO)
	$(BIN)/recoup train mountain-car --iterations 30 --seed 0 --out $(DEMO)

test: $(VENV)/installed
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow"

slow: $(VENV)/installed
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m slow

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/bench-installed
	$(BIN)/python -m benchmarks

reproduce: $(VENV)/installed
	$(BIN)/recoup reproduce all --quick

compare: $(VENV)/bench-installed
	$(BIN)/recoup compare --task suite $(COMPARED:%=--method %) --runs $(RUNS) --episodes $(EPISODES) \
		--out runs/suite

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build src/*.egg-info
