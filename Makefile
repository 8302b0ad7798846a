# `make demo` and `make test` need Python 3.11+, git and make, and nothing else.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: install demo test check format docs bench constraints clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Ragistry needs Python 3.11 or newer; run make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install  ## ingest fixtures/ and ask a few questions
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: install  ## every test
	$(BIN)/python -m pytest -n auto

check: install  ## all that decides whether a change lands
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: install  ## the site, into build/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: install  ## slow comparisons with peers and on real data; BENCH=--quick for less
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks $(BENCH)

constraints: install  ## write down the versions that are installed now
	$(BIN)/pip freeze --exclude-editable | grep -v '^ragistry' > constraints.txt

clean:
	rm -rf .venv demo-workspace .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
