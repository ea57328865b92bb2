# Everything runs in .venv, which `make setup` creates with Python 3.11 or newer.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# pytest and Python compile some 1,300 modules: once, and not in each process anew.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
READY := .venv/.ready

# The Python to create .venv with, and more arguments for pytest: make test PYTEST_ARGS="-k cli -x"
PYTHON ?=
PYTEST_ARGS ?=

# Debian and Ubuntu packages that a full run needs beyond Python, git and make.
APT_PACKAGES := gcc g++ openssl strace e2fsprogs systemd golang-go golang-golang-x-mod-dev chromium

.PHONY: help setup demo test explore lint format fresh screenshots bench certify campaign conform
.PHONY: fuzz-link fuzz torture flood starve wheel lock release deps-full clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## create .venv with everything for development

# The stamp is written last: an interrupted installation is repeated.
$(READY): pyproject.toml constraints.txt
	@for python in $(or $(PYTHON),python3.11 python3 python3.14 python3.13 python3.12); do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        found="$$python"; break; \
	    fi; \
	done; \
	if [ -z "$${found:-}" ]; then \
	    echo "setup: needs Python 3.11 or newer with venv$(if $(PYTHON),; $(PYTHON) is not)" >&2; \
	    exit 1; \
	fi; \
	echo "setup: .venv from $$("$$found" --version)"; \
	"$$found" -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

DEMO_ARGS ?=
demo: setup ## deal all four games at a whole simulated table; take a seat there, or deal
	$(BIN)/holecard demo $(DEMO_ARGS)

# Whole tables wait for devices and disks: two more processes than processors.
test: setup ## run the tests
	$(BIN)/python -m pytest -n 4 --dist worksteal $(PYTEST_ARGS)

explore: setup ## run each property test with new random seeds (a failure prints how to repeat it)
	$(BIN)/python -m pytest -n 2 --dist worksteal --timeout 0 -m hypothesis \
	    --hypothesis-profile explore $(PYTEST_ARGS)

lint: setup ## check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: setup ## format the code as lint expects it
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

fresh: setup ## check that generated files match the code
	$(BIN)/holecard procedure --check
	$(BIN)/python -m firmware_protocol.generate --check
	$(BIN)/python -m firmware_protocol.vectors.make
	$(BIN)/python -m hil.control.page --check
	$(BIN)/python -m controller.record_vocabulary --check
	$(BIN)/python -m controller.packaging.lock --check

screenshots: setup ## redraw the README's pictures, and every state of the pages into artifacts/
	$(BIN)/python -m tests.support.screens.browser.pictures
	HOLECARD_ARTIFACTS=artifacts $(BIN)/python -m pytest -q -n 2 --timeout 0 \
	    tests/long/campaigns/test_states_full.py

BENCH_ARGS ?=
bench: setup ## measure the speed; at full length with BENCH_ARGS=--full (hours)
	$(BIN)/holecard bench $(BENCH_ARGS)

# `make test` leaves it out; no time limit per test.
certify: setup ## check the published figures (long)
	$(BIN)/python -m pytest -q -s --timeout 0 tests/long/certify $(PYTEST_ARGS)

# Both engines over all rows, whole rounds at a table that is killed at every record, every script
# dealt by the daemon, every irregularity at the dealer's page. Half of the time is waiting for
# devices: four processes.
CAMPAIGN_SHARE ?= 1
campaign: setup ## play engines and tables against each other at length (long)
	HOLECARD_CAMPAIGN_SHARE=$(CAMPAIGN_SHARE) \
	    $(BIN)/python -m pytest -q -n 4 --dist worksteal --timeout 0 \
	    tests/long/campaigns/test_differential_full.py tests/long/campaigns/test_table_rounds_full.py \
	    tests/long/campaigns/test_scripts_over_wire.py tests/long/campaigns/test_pages_full.py \
	    tests/long/campaigns/test_every_command.py \
	    $(PYTEST_ARGS)

# Each run waits most of the time, so all six run in parallel.
conform: setup ## try every conformance item on each simulated device, serial and USB (long)
	$(BIN)/python -m pytest -q -n 6 --dist load --maxschedchunk 1 --timeout 0 \
	    tests/long/campaigns/test_conform_ports.py $(PYTEST_ARGS)

FUZZ_STEPS ?= 1000000
fuzz-link: setup ## a million random steps of link, faulty line and device (long)
	$(BIN)/python -m tests.long.fuzz.link --steps $(FUZZ_STEPS) --jobs 2

FUZZ_SECONDS ?= 60
FUZZ_RECORDS ?= 20000
fuzz: setup ## fuzzing of all decoders, FUZZ_SECONDS each, and of both verifiers (long)
	$(BIN)/python -m tests.long.fuzz.records --cases $(FUZZ_RECORDS) --jobs 2
	$(BIN)/python -m tests.long.fuzz.decoders --seconds $(FUZZ_SECONDS)

TORTURE_SHARE ?= 1
TORTURE_ARGS ?=
torture: setup ## power losses, kills and failing system calls against record and table (long)
	$(BIN)/python -m tests.long.torture --share $(TORTURE_SHARE) $(TORTURE_ARGS)

FLOOD_REQUESTS ?= 10000
flood: setup ## flood a table with connections while a dealer's browser is measured (long)
	$(BIN)/python -m tests.long.flood --requests $(FLOOD_REQUESTS)

# On a machine of its own: other programs would be the trouble that it makes.
starve: setup ## stop and starve the processes of whole tables (long)
	$(BIN)/python -m pytest -q -s --timeout 0 tests/long/starve $(PYTEST_ARGS)

# Built from scratch: setuptools would pack files of an older build.
wheel: setup ## build the wheel into dist/
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w dist .

lock: setup ## write requirements.lock: the dependencies of a table, with hashes
	$(BIN)/python -m controller.packaging.lock

RELEASE_KEY ?= release.key
RELEASE_NAME ?= $(error name the key: make release RELEASE_KEY=FILE RELEASE_NAME=house.example/release)
release: setup ## build wheel, locks, SBOM and the signed list of all files into dist/
	$(BIN)/python -m controller.packaging.release --key "$(RELEASE_KEY)" --name "$(RELEASE_NAME)"

deps-full: ## install the system packages that a full run needs
ifeq ($(strip $(APT_PACKAGES)),)
	@echo "deps-full: nothing beyond Python, git and make is needed yet"
else
	@as_root=; [ "$$(id -u)" = 0 ] || as_root="sudo -n"; \
	set -x; \
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q; \
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y $(APT_PACKAGES)
endif

clean: ## remove .venv, builds and caches
	rm -rf .venv build dist *.egg-info
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
