# The ways in. Everything runs in .venv, which is made on first use and again when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
RESULTS ?= results
PORT ?= 5000
ARGS ?=

export RAY_USAGE_STATS_ENABLED := 0
export MLFLOW_DISABLE_TELEMETRY := true
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help grid ui test lint types format

help:
	@echo "make grid     the embedded default, end to end, about 5 minutes on 2 cores; ARGS='key=value ...' changes it"
	@echo "make ui       the sweeps in MLflow, on http://127.0.0.1:$(PORT)"
	@echo "make test     the test suite;  make lint, make types, make format: what they say"

grid: .venv/installed
	@$(BIN)/python sweeps/full_grid.py cluster=local $(ARGS)

# The defaults would start ten processes and take 2.3 GB; this takes two and half a GB.
ui: .venv/installed
	@test -f $(RESULTS)/mlflow.db || { echo "error: there is no $(RESULTS)/mlflow.db yet; make grid writes it" >&2; exit 2; }
	MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false $(BIN)/mlflow server --workers 1 --host 127.0.0.1 --port $(PORT) \
		--backend-store-uri sqlite:///$(abspath $(RESULTS))/mlflow.db

test: .venv/installed-dev
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(ARGS)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed-dev
	$(BIN)/mypy

format: .venv/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv: some minutes, once"
	@$(BIN)/pip install --quiet --editable .
	@touch $@

.venv/installed-dev: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv with what the tests need: some minutes, once"
	@$(BIN)/pip install --quiet --editable '.[dev]'
	@touch .venv/installed $@
