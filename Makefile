# Needs python3 (3.11 or newer), pip and make. Everything else is installed into .venv.
# Another Python: make run PYTHON=python3.12

PYTHON ?= python3
PORT ?= 8000
# More arguments for pytest: make test ARGS="-k checkout -x"
ARGS ?=
# Arguments of the benchmark: make bench BENCH="--only search --rounds 3"
BENCH ?=
export PORT

PY := .venv/bin/python
# Settings for tools that only read the code, without the developer's .env.
TOOLS := ENV_FILE=/dev/null DEBUG=true
# The settings of a real server, with a random key.
PRODUCTION = ENV_FILE=/dev/null DEBUG=false ALLOWED_HOSTS=rooms.example.com PAYMENT_GATEWAY=sandbox \
	DEFAULT_FROM_EMAIL=rooms@example.com \
	SECRET_KEY="$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(50))')"

.PHONY: help env run test coverage faults screenshots bench lint types settings check fmt lock clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

env: .venv/.stamp  ## Build the environment in .venv, or bring it up to date

# The stamp has the time of the last installation.
.venv/.stamp: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "roombook needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1)." \
			"Another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Building the environment in .venv; the first time takes about half a minute."
	@$(PY) -m pip --version >/dev/null 2>&1 || { \
		rm -rf .venv; \
		$(PYTHON) -m venv .venv >/dev/null 2>&1 || { \
			: "Debian without python3-venv: virtualenv brings its own pip, installed beside"; \
			rm -rf .venv .venv-boot; \
			$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .venv-boot virtualenv \
			&& PYTHONPATH=.venv-boot $(PYTHON) -m virtualenv --quiet .venv && rm -rf .venv-boot; }; }
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

# Created only if it does not exist: a settings file is never overwritten.
.env: | .venv/.stamp
	@umask 077; $(PY) -c 'import secrets; print("DEBUG=true", \
		"SECRET_KEY=" + secrets.token_urlsafe(50), sep="\n")' > $@
	@echo "Made .env with a fresh secret key; deploy/env.example lists all settings."

run: .venv/.stamp .env  ## Serve on 127.0.0.1:8000 with demo data (PORT=, DATABASE_URL=)
	@exec $(PY) manage.py serve

test: .venv/.stamp  ## Run all tests, on PostgreSQL and SQLite if this machine has both (ARGS=)
	@failed=; \
	for db in $$($(PY) -m tests.pg_plugin); do \
		echo "== tests on $$db =="; \
		TEST_DB=$$db $(PY) -m pytest -n auto --maxprocesses 4 $(ARGS) \
			|| failed="$$failed $$db"; \
	done; \
	test -z "$$failed" || { echo "Tests failed on:$$failed" >&2; exit 1; }

coverage: .venv/.stamp  ## Run all tests as `make test` does, and report lines that they do not cover
	@rm -f .coverage; $(MAKE) --no-print-directory test ARGS="--cov --cov-append --cov-report= $(ARGS)"; \
	status=$$?; $(PY) -m coverage report; exit $$status

# Not in parallel, because they measure. About ten minutes.
faults: .venv/.stamp  ## Run the long form of the fault tests, and print figures (ARGS=)
	@failed=; \
	for db in $$($(PY) -m tests.pg_plugin); do \
		echo "== faults on $$db =="; \
		FAULTS=long TEST_DB=$$db $(PY) -m pytest -q tests/faults $(ARGS) || failed="$$failed $$db"; \
	done; \
	test -z "$$failed" || { echo "Faults that were not survived, on:$$failed" >&2; exit 1; }

screenshots: .venv/.stamp  ## Take pictures of every page of the back office, into screenshots/
	@$(PY) -m tests.browser.screenshots

# Data stay in .bench; the first run makes them, in some minutes. BENCH=--help tells what there is.
bench: .venv/.stamp  ## Measure speed beside hand-written SQL at 100,000 centers (BENCH=)
	@$(PY) -m tests.bench $(BENCH)

lint: .venv/.stamp  ## Check style, formatting and the layers of imports
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@.venv/bin/lint-imports

types: .venv/.stamp  ## Check types
	@$(TOOLS) $(PY) -m mypy .

settings: .venv/.stamp  ## Check for missing migrations, and the settings of a server
	@$(TOOLS) $(PY) manage.py makemigrations --check --dry-run
	@$(PRODUCTION) $(PY) manage.py check --deploy --fail-level WARNING

check: lint types settings test  ## All of the above, required before a merge

fmt: .venv/.stamp  ## Format the code and fix what can be fixed automatically
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

lock: .venv/.stamp  ## Compile requirements.txt from pyproject.toml
	@uv=$$(mktemp -d) && trap 'rm -rf "$$uv"' EXIT && \
	$(PY) -m pip install --quiet --disable-pip-version-check --target "$$uv" uv && \
	PYTHONPATH="$$uv" $(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--group dev --custom-compile-command "make lock" pyproject.toml -o requirements.txt

clean:  ## Remove the environment and files of tools, but no data (.bench) and no .env
	rm -rf .venv .venv-boot .coverage* .hypothesis .*_cache staticfiles
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
