# Few targets, each the whole of what it says. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long bench lint lock clean

PYTHON := .venv/bin/python
# How many processes, and who gets what: tests/scheduling.py
SIDE_BY_SIDE := -n auto
# Brokers and files go with it, however it is ended. A shell in between would keep SIGTERM to itself.
TESTS := exec $(PYTHON) -m scripts.tests
LINT := .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports --no-cache
# Where scripts/setup.sh puts Prometheus and promtool.
export PATH := $(CURDIR)/.tools/prometheus:$(PATH)
# Hundreds of processes are started here: each would compile the same modules again.
export PYTHONDONTWRITEBYTECODE :=

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 12

setup: ## install everything (uv, locked environment, Java, Kafka's jars); called by the others
	@scripts/setup.sh

demo: ## stock Kafka dies of a full disk, Kafka with Brimline lives; each feature with a number (ARGS=--keep: keep running)
	@scripts/setup.sh 4.3.1
	@$(PYTHON) -m scripts.demo $(ARGS)

lint: setup ## ruff, mypy --strict, import contracts
	$(LINT)

test: setup ## what CI runs: lint, then every test that takes seconds, on real parts
	@# mypy has one core. On the other one test modules are compiled: once, and not by every process of the run
	.venv/bin/pytest --collect-only --quiet >/dev/null 2>&1 & $(LINT); code=$$?; wait; exit $$code
	@$(TESTS) -m "not long" $(SIDE_BY_SIDE) --durations=15

test-long: setup ## the tests that take minutes: all Kafka versions, fuzzing; an hour, kept in docs/test-long.md
	@$(PYTHON) -m scripts.test_long

bench: ## ratios to kafka-python, the Java tool, du, DuckDB, Polars, HAProxy …; over half an hour, kept in docs/benchmarks.md
	@scripts/setup.sh --bench
	@$(PYTHON) -m bench

lock: setup ## write the hashed dependency locks and the jar lock anew
	scripts/lock.sh
	$(PYTHON) -m brimline.sandbox.jars lock

clean: ## remove the environment (the per-user caches stay)
	rm -rf .venv .tools dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
