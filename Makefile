# `make` alone prints help. The lock files decide every version. uv installs them if present, else pip.
PYTHON ?= python3
BIN := .venv/bin
UV := $(shell uv --version >/dev/null 2>&1 && echo uv)
LOCK_FLAGS ?=
ARGS ?=
# The tests start hundreds of processes. Without cached bytecode each of them compiles for 2 s.
unexport PYTHONDONTWRITEBYTECODE

ifdef UV
CREATE_VENV := uv venv --quiet --clear --no-python-downloads --python $(PYTHON) .venv
VENV_WORKS := $(BIN)/python -c ''
INSTALL := uv pip install --quiet --python $(BIN)/python
else
CREATE_VENV := $(PYTHON) -m venv --clear .venv
VENV_WORKS := $(BIN)/python -m pip --version
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif
# A test that hangs ends the run and shows where its threads stand.
NO_HANGS := --max-worker-restart=0 -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true
# One worker more than cores, because tests wait for other processes.
WORKERS = $$(($$(getconf _NPROCESSORS_ONLN) + 1))
ALL_TESTS := $(BIN)/python -m pytest -m ''
# Without --no-deps, pip 23 fails with a package that names an extra of another (`google-auth[pyopenssl]`)
# as soon as that other has a newer release than the lock. A lock names every package, so none is missing.
LOCKED := $(INSTALL) --no-build-isolation --no-deps --require-hashes

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test test-slow check oracles fuzz faults noise check-corpus backfill-equals bench e2e examples dialects-newest docs manifests lock kafka clean

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'ARGS="..." is passed on, as in: make test ARGS="-k trajectory"'

run: .venv/.run  ## collector, example agents and a live table of their scores, on loopback
	$(BIN)/pathgauge demo $(ARGS)

test: .venv/.dev  ## the default tests
	$(BIN)/python -m pytest --ignore=tests/style --numprocesses=$(WORKERS) --dist=loadfile $(NO_HANGS) $(ARGS)

test-slow: .venv/.dev  ## the slow tests: running services, hostile load, short fault injection, all examples of Hypothesis
	$(BIN)/python -m pytest -m 'slow or hypothesis' --hypothesis-profile=full \
	--ignore=tests/e2e --ignore=tests/benchmarks --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder $(NO_HANGS) $(ARGS)

check: .venv/.dev  ## style, types, layers, complexity and documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest --quiet tests/docs tests/style

e2e: .venv/.dev  ## the running service with a real Prometheus and Alertmanager, which must be installed
	PATHGAUGE_E2E=1 $(ALL_TESTS) tests/e2e tests/core/redaction/test_no_secret_is_kept.py tests/sinks/prometheus/rules/test_noise.py \
	--numprocesses=$(WORKERS) --dist=loadfile $(NO_HANGS) $(ARGS)

examples: .venv/.dev  ## install and run each agent of examples/ until it has full scores; PATHGAUGE_EXAMPLES=short runs five
	PATHGAUGE_EXAMPLES=$${PATHGAUGE_EXAMPLES:-1} $(ALL_TESTS) --numprocesses=auto --dist=worksteal tests/examples $(ARGS)

dialects-newest: .venv/.dev  ## the same with the newest release of every framework, to find what has changed upstream
	PATHGAUGE_EXAMPLES=newest $(ALL_TESTS) tests/examples -rP $(ARGS)

fuzz: .venv/.dev  ## 200,000 damaged captures and as many requests, frames, files; FUZZ_SEED=... repeats a run
	FUZZ_MUTATIONS=$${FUZZ_MUTATIONS:-200000} FUZZ_EXECUTIONS=$${FUZZ_EXECUTIONS:-200000} \
	$(ALL_TESTS) --numprocesses=auto tests/core/invocations/test_fuzz.py tests/fuzz $(ARGS)

oracles: .venv/.dev .venv-oracles/.done  ## compare scorers with other packages (500 MB); ORACLES_RECORD=1 writes the golden files
	ORACLES_PYTHON=.venv-oracles/bin/python $(ALL_TESTS) --numprocesses=auto --dist=loadgroup tests/oracles $(ARGS)

faults: .venv/.dev  ## an hour of kills, power cuts, damaged files, full disks, overload; FAULTS_SEED=... repeats a run
	FAULTS=1 $(ALL_TESTS) tests/faults tests/sinks/prometheus/test_cardinality.py --capture=no $(ARGS)

noise: .venv/.dev  ## simulate years of scores and of traffic that do not change: how often is there a false alarm?
	NOISE=1 $(ALL_TESTS) --numprocesses=auto tests/core/drift tests/core/traffic tests/core/verdicts tests/sinks/prometheus/rules $(ARGS)

check-corpus: .venv/.dev  ## read every capture below CORPUS=<directory> in every order of arrival
	PATHGAUGE_CORPUS=$(or $(CORPUS),tests/golden/captures) $(ALL_TESTS) tests/core/invocations/test_corpus.py $(ARGS)

backfill-equals: .venv/.dev  ## backfill 100,000 traces from Jaeger and Tempo, and compare with live scoring; prints the rate
	BACKFILL_TRACES=$${BACKFILL_TRACES:-100000} $(ALL_TESTS) tests/backfill/test_equals_live.py --capture=no $(ARGS)

bench: .venv/.dev  ## throughput, cost and stages, as ratios to a baseline of the same run; BENCH_RECORD=1 stores the ratios of a release
	BENCH_SECONDS=$${BENCH_SECONDS:-15} BENCH_RESULTS=$${BENCH_RESULTS:-1000000} $(ALL_TESTS) tests/benchmarks --capture=no $(ARGS)

docs: .venv/.run  ## regenerate the pages for commands, scorers and known names
	$(BIN)/python -m typer pathgauge.collector.cli utils docs --name pathgauge --output docs/cli.md
	$(BIN)/python docs/generate.py

manifests: .venv/.dev  ## regenerate the Grafana dashboards and the PrometheusRule of deploy/
	PYTHONPATH=deploy/grafana $(BIN)/python -m generator
	$(BIN)/python deploy/kubernetes/wrap_rules.py

lock:  ## resolve pyproject.toml into the lock files (needs uv); LOCK_FLAGS=--upgrade takes newer versions
	@uv --version
	UV_CUSTOM_COMPILE_COMMAND='make lock'; export UV_CUSTOM_COMPILE_COMMAND; \
	compile='uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(LOCK_FLAGS)'; \
	$$compile --group build --output-file requirements-build.lock && \
	$$compile pyproject.toml --constraint requirements-build.lock --output-file requirements.lock && \
	$$compile --group dev --constraint requirements-build.lock --constraint requirements.lock --output-file requirements-dev.lock && \
	$$compile pyproject.toml --extra judge --constraint requirements-build.lock --constraint requirements-dev.lock \
	  --constraint requirements.lock --output-file requirements-judge.lock && \
	$$compile pyproject.toml --extra mcp --constraint requirements-build.lock --constraint requirements-dev.lock \
	  --constraint requirements.lock --output-file requirements-mcp.lock && \
	$$compile pyproject.toml --extra kafka --extra postgres --constraint requirements-build.lock \
	  --constraint requirements-dev.lock --constraint requirements.lock --output-file requirements-cluster.lock && \
	$$compile --group oracles --constraint requirements-build.lock --output-file requirements-oracles.lock

kafka:  ## download the Kafka broker of tests/receivers/kafka (needs Java and Maven; 40 MB)
	mvn --quiet --batch-mode --file tests/support/kafka.pom.xml dependency:copy-dependencies \
	-DoutputDirectory=$$HOME/.cache/pathgauge-tests/kafka-4.0.0/libs

clean:  ## remove the virtual environment and every cache
	rm -rf .venv .venv-oracles dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Why packages are installed. The mark of an earlier installation is older than these files.
WHEN = $(if $(wildcard $@),again because of $(or $(filter-out .venv/.run,$?),pyproject.toml),only the first time)

# The build requirements are locked and installed first, so that no build fetches unpinned tools.
.venv/.run: pyproject.toml requirements-build.lock requirements.lock
	@$(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'pathgauge needs Python 3.11 or newer with venv. On Debian and Ubuntu:' >&2; \
	  echo '  sudo apt-get install -y git make python3 python3-venv ca-certificates' >&2; exit 1; }
	@echo "Installing pathgauge and $$(grep -c == requirements.lock) packages (requirements.lock) in .venv; $(WHEN)."
	@$(VENV_WORKS) >/dev/null 2>&1 || $(CREATE_VENV)
	@$(LOCKED) -r requirements-build.lock
	@$(LOCKED) -r requirements.lock
	@$(INSTALL) --no-build-isolation --no-deps -e .
	@touch $@

.venv/.dev: .venv/.run requirements-dev.lock
	@echo "Installing the packages for development (requirements-dev.lock) in .venv; $(WHEN)."
	@$(LOCKED) -r requirements-dev.lock
	@touch $@

IN_ORACLES = $(subst .venv,.venv-oracles,$(1))

# Packages that cannot be installed beside the collector's own.
.venv-oracles/.done: requirements-build.lock requirements-oracles.lock
	@$(call IN_ORACLES,$(VENV_WORKS)) >/dev/null 2>&1 || $(call IN_ORACLES,$(CREATE_VENV))
	$(call IN_ORACLES,$(LOCKED)) -r requirements-build.lock
	$(call IN_ORACLES,$(LOCKED)) -r requirements-oracles.lock
	@touch $@
