# Requires python3 (3.11 or newer), pip and make. Everything else is installed into .venv.
# To use another Python: make run PYTHON=python3.12

PYTHON ?= python3
PORT ?= 8000
# Arguments for pytest: make test ARGS="-k checkout -x"
ARGS ?=
# Arguments for the benchmark: make bench BENCH="--only search --rounds 3"
BENCH ?=
export PORT
# Each process of the tests would have to compile all test files again.
unexport PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
# The locks are complete. Without --no-deps, older versions of pip take the newest release for a
# requirement with an extra, such as coverage[toml], and each release could break the installation.
# Compiling all modules takes a third of the time, and Python compiles those that it imports.
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes
CHECK = found=$$($(PY) -m pip check --disable-pip-version-check) || { echo "$$found" >&2; \
	echo "Packages in .venv do not fit together. Update or uninstall those that roombook did not" \
		"install, or run 'make clean', then try again." >&2; exit 1; }
# Settings for tools that only read the code. They do not depend on .env.
TOOLS := ENV_FILE=/dev/null DEBUG=true
# Settings of a production server, with a random key.
PRODUCTION = ENV_FILE=/dev/null DEBUG=false ALLOWED_HOSTS=rooms.example.com TRUSTED_PROXIES=1 \
	PAYMENT_GATEWAY=sandbox DEFAULT_FROM_EMAIL=rooms@example.com \
	SECRET_KEY="$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(50))')"

.PHONY: help env dev run test coverage mutants faults clients screenshots bench contract-docs stats lint types settings check fmt lock clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

env: .venv/.stamp  ## Build or update the environment of the service in .venv, compiled
	@: "Service users cannot write there. Some files are templates, which do not compile."; \
	$(PY) -m compileall -q -j 0 .venv/lib >/dev/null || true

dev: .venv/.stamp-dev  ## The same with the tools for tests and development, not compiled

# The stamp is newer than requirements.txt if the locked versions are installed.
.venv/.stamp: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "roombook needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1)." \
			"To use another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Building the environment in .venv; the first time takes about half a minute."
	@$(PY) -m pip --version >/dev/null 2>&1 || { \
		rm -rf .venv; \
		$(PYTHON) -m venv .venv >/dev/null 2>&1 || { \
			: "Debian without python3-venv cannot create pip: install the version of its own pip"; \
			rm -rf .venv; \
			$(PYTHON) -m venv --without-pip .venv \
			&& $(PYTHON) -m pip --python $(PY) install --quiet --disable-pip-version-check \
				"pip==$$($(PYTHON) -c 'import pip; print(pip.__version__)')"; }; }
	@$(INSTALL) -r requirements.txt
	@$(CHECK)
	@touch $@

.venv/.stamp-dev: .venv/.stamp requirements-dev.txt
	@echo "Installing the tools for tests and development."
	@$(INSTALL) -r requirements-dev.txt
	@$(CHECK)
	@touch $@

# Created only if it does not exist. It is never overwritten.
.env: | .venv/.stamp
	@umask 077; $(PY) -c 'import secrets; print("DEBUG=true", \
		"SECRET_KEY=" + secrets.token_urlsafe(50), sep="\n")' > $@
	@echo "Created .env with a new secret key. deploy/env.example lists all settings."

run: .venv/.stamp .env  ## Serve on 127.0.0.1:8000 with demo data (PORT=, DATABASE_URL=)
	@exec $(PY) manage.py serve

# On both databases at the same time: while a test on one waits for a browser or a service, the other
# goes on. Each file runs in one process, which prepares its data and services once, in the order of
# tests/conftest.py.
test: .venv/.stamp-dev  ## Run all tests, on PostgreSQL and SQLite if this machine has both (ARGS=)
	@$(MAKE) --no-print-directory --keep-going --jobs=2 $(TESTS_ON)

TESTS_ON = $(addprefix tests-on-,$(shell $(PY) -m tests.pg_plugin))
tests-on-%: SHELL := bash
tests-on-%: .SHELLFLAGS := -o pipefail -c
tests-on-%:
	@TEST_DB=$* COVERAGE_FILE=.coverage.$* $(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile \
		--no-loadscope-reorder $(ARGS) 2>&1 | sed -u 's/^/$*: /'

coverage: .venv/.stamp-dev  ## Run all tests, and report the lines that they do not reach (ARGS=)
	@rm -f .coverage*; $(MAKE) --no-print-directory test ARGS="--cov --cov-report= $(ARGS)"; \
	status=$$?; $(PY) -m coverage combine --quiet && $(PY) -m coverage report; exit $$status

# What the tests reach is kept in .mutants, and a run that was stopped goes on there.
mutants: .venv/.stamp-dev  ## Change the code in 640 places, and list the changes that no test finds (ARGS=)
	@$(PY) -m tests.mutants $(ARGS)

LONG_TESTS := tests/faults tests/payments/machine tests/bench/test_bench.py \
	tests/reservations/test_planted_defects.py tests/commands/test_working_days.py \
	tests/test_wrong_values.py

# These tests measure: they run one after another, for about ten minutes, and need an idle machine.
faults: .venv/.stamp-dev  ## Stop workers, databases and the gateway for longer than `make test` does (ARGS=)
	@failed=; \
	for db in $$($(PY) -m tests.pg_plugin); do \
		echo "== faults on $$db =="; \
		FAULTS=long TEST_DB=$$db $(PY) -m pytest -q $(LONG_TESTS) $(ARGS) || failed="$$failed $$db"; \
	done; \
	test -z "$$failed" || { echo "Fault tests failed on:$$failed" >&2; exit 1; }

# Needs the package registries, npm and Java.
clients: .venv/.stamp-dev  ## Generate clients from docs/openapi.json; two of them book a room (ARGS=)
	@CLIENTS=true $(PY) -m pytest -q tests/clients $(ARGS)

screenshots: .venv/.stamp-dev  ## Take the pictures of the documentation, into screenshots/
	@$(PY) -m tests.browser.screenshots

# The first run generates its data in .bench, which takes about ten minutes. See BENCH=--help.
bench: .venv/.stamp-dev  ## Measure the speed next to hand-written SQL at 100,000 centers (BENCH=)
	@$(PY) -m tests.bench $(BENCH)

stats: .venv/.stamp-dev  ## Count lines, import cycles and other figures of the code
	@$(PY) -m tests.stats

# Warnings and whatever OpenAPI does not allow are errors.
OPENAPI := $(TOOLS) $(PY) manage.py spectacular --validate --fail-on-warn --format openapi-json

contract-docs: .venv/.stamp-dev  ## Update docs/contract.md and docs/openapi*.json from the code
	@WRITE_EXAMPLES=true TEST_DB=sqlite $(PY) -m pytest -q tests/contract/test_openapi.py -k examples_succeed
	@$(TOOLS) $(PY) manage.py shell --no-imports -c "from tests.contract import docs_page; docs_page.update_page()"
	@$(OPENAPI) --file docs/openapi.json --custom-settings tests.contract.openapi.OPENAPI_3_1
	@$(OPENAPI) --file docs/openapi-3.0.json --custom-settings tests.contract.openapi.OPENAPI_3_0

lint: .venv/.stamp-dev  ## Check style, formatting and the direction of imports
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@.venv/bin/lint-imports

types: .venv/.stamp-dev  ## Check types
	@$(TOOLS) $(PY) -m mypy .

settings: .venv/.stamp-dev  ## Check the settings of a production server
	@$(PRODUCTION) $(PY) manage.py check --deploy --fail-level WARNING

check: lint types settings test  ## Run all of these checks, which a change must pass

fmt: .venv/.stamp-dev  ## Format the code and fix style errors
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

# Pinned, because another version may compile other files.
UV := uv==0.13.9

lock: .venv/.stamp-dev  ## Compile requirements.txt and the other locks from pyproject.toml and package.json
	@uv=$$(mktemp -d) && trap 'rm -rf "$$uv"' EXIT && \
	$(PY) -m pip install --quiet --disable-pip-version-check --target "$$uv" $(UV) && \
	compile() { PYTHONPATH="$$uv" $(PY) -m uv pip compile --quiet --universal --python-version 3.11 \
		--generate-hashes --custom-compile-command "make lock" "$$@"; } && \
	compile --group dev pyproject.toml -o requirements-dev.txt && \
	compile --constraint requirements-dev.txt pyproject.toml -o requirements.txt && \
	compile --group tracing --constraint requirements.txt -o deploy/tracing.txt && \
	compile --group long -o tests/long/requirements.txt && \
	compile --group mutants -o tests/mutants/requirements.txt
	@npm install --prefix tests/long --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund --silent

clean:  ## Remove the environment and caches, but not data, .bench and .env
	rm -rf .venv .coverage* .hypothesis .*_cache staticfiles
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
