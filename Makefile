# Everything below works on a fresh machine: the first target that needs it creates .venv and installs into it.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
USED := $(VENV)/.installed
STAMP := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
LINTED := src tests tools docs/conf.py $(wildcard examples benchmarks)

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz campaign lint figures docs wheel clean

# New cases for so long; `make test SEED=7` draws those of a seed.
SECONDS ?= 600
SEED ?=

help:
	@echo "make demo      learn, compare, tag, explain and promise on a small English corpus"
	@echo "make test      lint, types and tests"
	@echo "make fuzz      the tests of drawn cases with new ones, for SECONDS=600"
	@echo "make campaign  attacks on files, inputs, processes and fits: see docs/reliability.md"
	@echo "make lint      lint and types only"
	@echo "make docs      the documentation site, in build/docs/html"
	@echo "make figures   measure what README shows: an hour"
	@echo "make wheel     build the wheel, install it alone, and test what was installed"
	@echo "make clean     remove .venv and every cache"

# Redone only when pyproject.toml changes: the install is editable, sources need no new one.
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(USED) $@

# What a user needs and no more; an environment with the tools of development has it too.
$(USED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

demo: $(USED)
	$(BIN)/vcrf demo -o build/demo

lint: $(STAMP)
	$(BIN)/ruff check --quiet $(LINTED)
	$(BIN)/ruff format --quiet --check $(LINTED)
	$(BIN)/mypy --no-error-summary

test: lint
	$(BIN)/python -m pytest --quiet -n 2 $(if $(SEED),--hypothesis-seed=$(SEED))

fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

campaign: $(STAMP)
	$(BIN)/python -m tests.campaign $(if $(SEED),--seed $(SEED))

# What README shows, measured again: about an hour, with the treebanks in ../shared/data.
figures: $(STAMP)
	$(BIN)/python benchmarks/figures.py

$(DOCS): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $(USED) $@

docs: $(DOCS)
	$(BIN)/python tools/build_docs.py

# As installed: the wheel alone in a new environment, with the tests; OLDEST=1 with the oldest dependencies.
wheel:
	$(PYTHON) tools/test_wheel.py $(if $(OLDEST),--oldest)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests $(wildcard examples benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +
