# `make demo` and `make test` set up what they need in .venv, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := runs/demo
TOOLS := .venv-release

COMPARED ?= recoup recoup:window=1 iw-pgpe-ob cma-es cma-es:popsize=half lq-cma-es snes snes:popsize=half \
	evosax-pgpe:lr=0.3 evosax-open-es:lr=3 optuna-tpe optuna-cma-es
RUNS ?= 30
EPISODES ?= 400

.PHONY: help venv light installed install docs-installed tools demo test slow lint docs links figures bench reproduce \
	compare dist rooms clean

help:
	@echo "make demo      train on the mountain car; ends with a table and a picture"
	@echo "make test      run the test suite, but for what takes long"
	@echo "make slow      run what takes long: kills, coverage, a cluster, whole reproductions"
	@echo "make lint      lint, format check, types"
	@echo "make docs      build the documentation: site/index.html"
	@echo "make links     look at every link of the documentation that leads elsewhere"
	@echo "make figures   make the figures of the documentation again, from what was measured"
	@echo "make bench     print the benchmark figures beside their targets"
	@echo "make reproduce the paper's figures and claims in ten minutes; ends in a page"
	@echo "make compare   methods on the whole suite; hours, says how many, goes on where it was"
	@echo "make dist      what would be published, twice, and every check of it; in dist/"
	@echo "make rooms     install that in clean rooms, with each Python here, and run README in them"
	@echo "make clean     remove .venv, what is built and caches"

# What pip is asked for is remembered, not when: a file that git has written anew, or another setting of a
# tool in pyproject.toml, installs nothing, so that the network is needed once.
ASKED = sed '/^\[tool\./,$$d' pyproject.toml | cat - constraints.txt | cksum

# The demo needs what `pip install .` brings, and no extra; byte code is written for what it imports
# alone, which saves half of the time. Whoever has all that the tests need has that too.
WANTED := '.[dev]'
STAMP := installed

light:
	@cat $(VENV)/light $(VENV)/installed 2>/dev/null | grep -qxF "`$(ASKED)`" || \
		$(MAKE) --no-print-directory install WANTED='. --no-compile' STAMP=light

installed:
	@test "`$(ASKED)`" = "`cat $(VENV)/installed 2>/dev/null`" || $(MAKE) --no-print-directory install

venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "recoup needs Python 3.11 or newer; name one with make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

install: venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e $(WANTED)
	@$(ASKED) > $(VENV)/$(STAMP)

docs-installed:
	@test "`$(ASKED)`" = "`cat $(VENV)/docs-installed 2>/dev/null`" || \
		$(MAKE) --no-print-directory install WANTED='.[docs]' STAMP=docs-installed

# What builds and checks a release: in a place of its own, since its packages are not Recoup's.
tools:
	@test "`cksum < release/tools.txt`" = "`cat $(TOOLS)/installed 2>/dev/null`" || { \
		$(PYTHON) -m venv $(TOOLS) && \
		$(TOOLS)/bin/pip install --quiet --disable-pip-version-check -r release/tools.txt && \
		cksum < release/tools.txt > $(TOOLS)/installed; }

demo: light
	@rm -rf $(DEMO)
	$(BIN)/recoup train mountain-car --iterations 30 --seed 0 --out $(DEMO)

test: installed
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow"

# One worker more than cores: two of its files mostly wait.
slow: installed
	$(BIN)/python -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist loadfile --no-loadscope-reorder -m slow

lint: installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What was built is kept in build/docs, so that a changed page alone is made again.
docs: docs-installed
	$(BIN)/python -m sphinx -b html -n -W --keep-going -q -d build/docs docs site
	@echo "site/index.html"

links: docs-installed
	$(BIN)/python docs/ext/links.py docs README.md CONTRIBUTING.md

figures: installed
	$(BIN)/python -m benchmarks.figures

bench: installed
	$(BIN)/python -m benchmarks

reproduce: installed
	$(BIN)/recoup reproduce all --quick

compare: installed
	$(BIN)/recoup compare --task suite $(COMPARED:%=--method %) --runs $(RUNS) --episodes $(EPISODES) \
		--out runs/suite

dist: tools
	$(TOOLS)/bin/python -m release.dist

rooms: dist
	$(TOOLS)/bin/python -m nox

clean:
	rm -rf $(VENV) $(TOOLS) .nox dist .pytest_cache .mypy_cache .ruff_cache build site src/*.egg-info
