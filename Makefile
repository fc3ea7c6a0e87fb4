# Two commands: `make demo` shows what Ostinato does, `make test` passes the tests. Both set themselves up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test unit lint types contracts format kinds bench clean

demo: $(READY)
	@$(BIN)/ostinato demo

test: $(READY)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports --no-cache

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

kinds: $(READY)
	$(BIN)/python scripts/generate_kinds.py

bench: $(READY)
	$(BIN)/pip install --quiet -e '.[bench]'
	$(BIN)/python -m bench

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist
