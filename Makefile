# What people type. `make help` lists it; every target prepares what it needs and keeps what is there.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo serve install test tests test-fast lint format typecheck bench soak fuzz lock translations licences sbom vulnerabilities secrets services schema docs site clean

UV_VERSION := 0.13.8
VENV := .venv
PY := $(VENV)/bin/python
RUN := $(PY) tests/services/run.py
FILE ?= openapi.yaml
export PYTHONUNBUFFERED := 1
# Compiled modules are kept even where the environment says otherwise: without them every process starts four
# times slower.
unexport PYTHONDONTWRITEBYTECODE

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-10s %s\n", $$1, $$2 }'
	@echo
	@echo "  demo and serve read PORT=, EVALAPP_DATA= and DATA= (demo: an interchange folder of your own);"
	@echo "  test reads ARGS= (what pytest is given: make test ARGS=\"tests/flows -x\") and WORKERS=."

# ---- running ----------------------------------------------------------------------------------------------

demo: $(VENV)/.installed ## everything: environment, demonstration project, Redis, workers, web; Ctrl-C ends it
	@exec $(PY) manage.py up $(if $(DATA),--data "$(DATA)",--demo)

serve: $(VENV)/.installed ## the same without the demonstration project
	@exec $(PY) manage.py up

# ---- environment ------------------------------------------------------------------------------------------

install: $(VENV)/.installed-dev ## the environment with all development requirements, no server

# A Python of at least 3.11 that can make environments; says what to install where there is none.
$(VENV)/.python:
	@set -e; chosen=; \
	for python in "$${PYTHON:-python3}" python3 python3.13 python3.12 python3.11; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then chosen=$$python; break; fi; \
	done; \
	if [ -z "$$chosen" ]; then \
	  echo "evalapp needs Python 3.11 or newer. On Debian or Ubuntu: apt-get install python3 python3-venv" >&2; exit 1; \
	fi; \
	if ! "$$chosen" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "$$chosen cannot make an environment: its venv or pip is missing." >&2; \
	  echo "On Debian or Ubuntu: apt-get install python3-venv python3-pip" >&2; exit 1; \
	fi; \
	echo "making $(VENV) with $$("$$chosen" --version)"; \
	"$$chosen" -m venv $(VENV); \
	$(PY) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); \
	touch $@

# HASHES=1: every package must be the very file that requirements.lock knows; without it another build of the same
# version, such as torch for the CPU from an index of its own, is taken, too.
LOCKED := $(if $(HASHES),requirements.lock,requirements.txt)

# The program `evalapp`, as a package installs it, for this checkout.
define LAUNCHER
printf '#!/bin/sh\nexec "$${0%%/*}/python" "$${0%%/*}/../../manage.py" "$$@"\n' > $(VENV)/bin/evalapp && chmod +x $(VENV)/bin/evalapp
endef

$(VENV)/.installed: requirements.txt requirements.lock | $(VENV)/.python
	@$(PY) evalapp/ops/install.py $(LOCKED)
	@$(LAUNCHER)
	@touch $@

$(VENV)/.installed-dev: requirements.txt requirements.lock requirements-dev.txt | $(VENV)/.python
	@$(if $(HASHES),$(PY) evalapp/ops/install.py requirements.lock,true)
	@$(PY) evalapp/ops/install.py requirements.txt requirements-dev.txt
	@$(LAUNCHER)
	@touch $(VENV)/.installed $@

# ---- checking ---------------------------------------------------------------------------------------------

test: $(VENV)/.installed-dev $(if $(ARGS),,lint) ## everything, with real servers on ports of their own
ifdef ARGS
	@$(RUN) test $(ARGS)
else
	@$(MAKE) --no-print-directory -j2 tests typecheck
endif

# Types are checked beside the tests, which one core alone would hold up for a minute.
tests: $(VENV)/.installed-dev
	@$(RUN) test

# The pure rooms and the reference: what needs no rows, no models and no torch.
FAST := annotation/allocation annotation/parsers architecture/test_docs.py evalapp/client evalapp/ops evalapp/settings \
  evalapp/stats retrieval/index scoring/ml/text

test-fast: $(VENV)/.installed-dev ## the pure rooms, in under a minute
	@$(PY) -m pytest -q -n auto --dist loadfile -m "not server and not browser and not slow" \
	  --ignore tests/evalapp/client/test_callback.py --ignore tests/evalapp/client/test_how_to.py \
	  --deselect tests/retrieval/index/test_embedded.py::test_a_thousand_real_queries_equal_a_scan $(addprefix tests/,$(FAST)) $(ARGS)

# Formats template tags; the lines of templates are broken by hand, at most 160 characters (tests/architecture).
DJADE = --target-version 5.2 $(shell find templates -name '*.html')

lint: $(VENV)/.installed-dev ## ruff, formatting, import contracts
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/djade --check $(DJADE) >/dev/null || { echo "make format formats the templates"; exit 1; }
	@$(VENV)/bin/lint-imports

format: $(VENV)/.installed-dev ## put the code into the common form
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/djade $(DJADE)

typecheck: $(VENV)/.installed-dev ## mypy
	@$(VENV)/bin/mypy

bench: $(VENV)/.installed-dev ## the benchmarks, against their peers (one: BENCH=name; on PostgreSQL: DB=postgres)
	@set -e; for file in $(if $(BENCH),benchmarks/$(BENCH).py,$(filter-out benchmarks/_%,$(wildcard benchmarks/*.py))); do \
	  echo "== $$file" >&2; $(if $(DB),$(RUN) with $(DB) -- sh -c 'DATABASE_URL=$$TEST_DATABASE_URL exec "$$@"' bench) $(PY) "$$file" $(ARGS); \
	done

# Half an hour of everything, then threads and processes at one campaign, then each kind of job killed many times over.
soak: $(VENV)/.installed-dev ## everything at once for 30 minutes while parts die (MINUTES=3, EACH=100, KILLS=4)
	@$(PY) tests/faults/soak.py --minutes $(or $(MINUTES),30)
	@SOAK=$(or $(EACH),2000) $(RUN) test tests/annotation/services/test_judging_rows.py tests/faults/test_claims.py $(ARGS)
	@SOAK_KILLS=$(or $(KILLS),20) $(RUN) test tests/faults/test_jobs.py tests/faults/test_jobs_at_random.py $(ARGS)

FUZZ_ENV := $(VENV)/bin/uv run --no-project --isolated --python $(PY) --with atheris==3.0.0 --with $(shell grep '^orjson==' requirements.txt) --
fuzz: $(VENV)/.installed-dev ## the readers of uploads by coverage and the API by its schema, for some minutes (SECONDS=300)
	@$(FUZZ_ENV) python tests/security/fuzz_parsers.py -max_total_time=$(or $(SECONDS),300) -max_len=4096
	@FUZZ=100 $(PY) -m pytest -q tests/security/test_openapi.py $(ARGS)

lock: | $(VENV)/.python ## requirements*.txt and requirements.lock (with hashes) from pyproject.toml; pins that fit stay
	@$(PY) evalapp/ops/install.py --lock

translations: $(VENV)/.installed-dev ## collect the texts of the code into evalapp/locale/ and compile the catalogues
	@$(PY) docs/translations.py

licences: $(VENV)/.installed ## the licence of every package; fails where one does not fit
	@$(PY) -m evalapp.ops.inventory licences

sbom: $(VENV)/.installed ## a bill of materials (CycloneDX 1.5) on the screen
	@$(PY) -m evalapp.ops.inventory sbom requirements.lock

vulnerabilities: $(VENV)/.installed ## ask the vulnerability database about what is locked (needs the network)
	@$(VENV)/bin/uv tool run --from pip-audit==2.10.1 pip-audit --require-hashes --disable-pip -r requirements.lock

# The folder is closed to others; its files are read inside the containers by users of other numbers.
secrets: ## what docker compose keeps secret, each a file in secrets/; what is there stays
	@mkdir -p secrets && chmod 700 secrets
	@for name in secret_key metrics_token postgres_password redis_password elastic_password; do \
	  test -s secrets/$$name || { python3 -c 'import secrets; print(secrets.token_hex(32))' > secrets/$$name; echo "made secrets/$$name"; }; \
	done
	@test -s secrets/email_url || { echo consolemail:// > secrets/email_url; echo "made secrets/email_url (mails go to the log; smtp://user:password@host:port sends them)"; }
	@chmod 644 secrets/*

services: $(VENV)/.installed-dev ## start the test servers and leave them up until Ctrl-C (some: NAMES="redis postgres")
	@$(RUN) stay $(NAMES)

# ---- writing ----------------------------------------------------------------------------------------------

schema: $(VENV)/.installed-dev ## the OpenAPI schema of the REST API (FILE=openapi.yaml)
	@$(PY) manage.py spectacular --validate --fail-on-warn --file $(FILE)

docs: $(VENV)/.installed-dev ## docs/reference/, docs/promises.md and the examples of the API, from the code
	@$(PY) docs/generate.py
	@$(PY) docs/promises.py
	@WRITE_EXAMPLES=1 $(PY) -m pytest -q tests/architecture/test_api_examples.py -k succeeds

# Sphinx comes with its own environment, because only this target needs it; the libraries are read from ours.
SITE_ENV := $(VENV)/bin/uv run --no-project --isolated --python $(PY) --with sphinx==9.0.4 --with myst-parser==5.2.0 \
  --with pydata-sphinx-theme==0.24.0 --
site: $(VENV)/.installed-dev ## the documentation as a website with search, in build/site; a broken link fails
	@PYTHONPATH=$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))') $(SITE_ENV) python docs/site/build.py

clean: ## what tools left behind; keeps data and the environment
	@rm -rf build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks htmlcov .coverage
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf
