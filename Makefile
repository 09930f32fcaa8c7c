# Every target sets up what it needs: a machine with Python 3.11 or later, make and a C library is enough.
#
#   make demo      train, certify, save, load and score, in under three minutes from nothing
#   make test      the test suite
#   make quick     the tests that are not marked slow: under two minutes, once kernels are compiled
#   make docs      the documentation, its examples executed; warnings are errors (docs/_build/html)
#   make lint      ruff, mypy, and the order of imports
#   make ceilings  measure passes, epochs and compiled functions, rewrite tests/ceilings.json, tell what rose and fell (to be reviewed)
#   make fuzz      two million changed files for the readers (FUZZ_ARGS="--seed 2" for others)
#   make bench     dualgap beside its peers (sets up the peers too; see benchmarks/README.md)
#   make experiments  the tables and figures of the papers, in full: hours (EXPERIMENTS_ARGS="rupnik --quick" for a part, quickly)
#   make clean     remove everything that make made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Compiled kernels stay inside the clone, apart from the user's own cache.
export DUALGAP_CACHE ?= $(CURDIR)/.cache/kernels
# Real data sets, where they are; tests that want them skip where they are missing.
ifneq ($(wildcard ../shared/data),)
export DUALGAP_DATA ?= $(abspath ../shared/data)
endif
PYTEST_ARGS ?= -n 2 --dist worksteal

.PHONY: demo test quick docs lint ceilings fuzz bench experiments format clean

demo: $(VENV)/.installed
	$(BIN)/dualgap demo

test: $(VENV)/.installed-dev
	$(BIN)/pytest $(PYTEST_ARGS)

quick: $(VENV)/.installed-dev
	$(BIN)/pytest $(PYTEST_ARGS) -m "not slow"

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/sphinx-build -q -W --keep-going -b doctest docs docs/_build/doctest
	@echo "docs/_build/html/index.html"

ceilings: $(VENV)/.installed-dev
	$(BIN)/python tests/ceilings.py $(CEILINGS_ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(VENV)/.installed-fuzz
	$(BIN)/python -m fuzz $(FUZZ_ARGS)

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks $(BENCH_ARGS)
	$(BIN)/python -m benchmarks.publish

experiments: $(VENV)/.installed-dev
	$(BIN)/dualgap reproduce --full $(EXPERIMENTS_ARGS)

clean:
	rm -rf docs/_build docs/auto_examples docs/reference/generated docs/sg_execution_times.rst
	rm -rf $(VENV) .venvs .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The stamps: done once, and again when pyproject.toml or constraints.txt change. Without network a re-run does nothing.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "dualgap needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) -V 2>&1): run make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || $(PYTHON) -m virtualenv -q $(VENV) 2>/dev/null \
	  || { $(PYTHON) -m pip install -q --user --break-system-packages virtualenv && $(PYTHON) -m virtualenv -q $(VENV); } \
	  || { echo "cannot make a virtual environment: install python3-venv or virtualenv"; exit 1; }
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing dualgap into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing the tools for tests into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt "pip>=25.1"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --group dev
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "installing the tools for the documentation into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt "pip>=25.1"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --group docs
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	@echo "installing the tools for benchmarks into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --group bench
	@touch $@

$(VENV)/.installed-fuzz: $(VENV)/.installed-dev
	@echo "installing the fuzzer into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --group fuzz
	@touch $@
