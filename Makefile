# Two commands: `make demo` shows what Ostinato does, `make test` passes the tests. Both set themselves up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := $(VENV)/.demo
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)

.PHONY: demo test lint types contracts coverage docs dist format kinds bench bench-large bench-peers soak clean

demo: $(DEMO)
	@$(BIN)/ostinato demo

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports --no-cache

# Of what everything is built on, by its own tests; tracing makes tests take twice as long, so these are run once more.
coverage: $(READY)
	$(BIN)/python -m pytest tests/unit/api -q --cov=ostinato.api --cov-report=term:skip-covered --cov-fail-under=95

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The wheel and the sdist, checked and installed in an empty environment.
dist: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dist]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python scripts/check_dist.py dist

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

kinds: $(READY)
	$(BIN)/python scripts/generate_kinds.py

# Beside the peers, in about 20 minutes: docs/performance.md. The peers in Go are built by `make bench-peers`.
bench: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench --peer-cache $(BENCH_ARGS)
	$(BIN)/python -m bench.report

# 50,000 Pods on 5,000 nodes.
bench-large: $(READY)
	$(BIN)/python -m bench.large
	$(BIN)/python -m bench.report

# Kills and faults under load on SQLite and etcd, with all checks; SOAK_ARGS="--kills 20 --writes 20000" shortens it.
soak: $(READY)
	$(BIN)/python -m tests.faults.real.soak $(SOAK_ARGS)

bench-peers: $(READY)
	$(BIN)/python -m bench.peers

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(DEMO)

# The demo needs the server and nothing else.
$(DEMO): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[server]'
	@touch $@

clean:
	rm -rf site $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist
