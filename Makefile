# Every target sets up what it needs: a virtual environment in the checkout, no sudo.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo examples test test-slow bench exam docs test-docs lint format clean
help:
	@echo "make demo       the main job in small: a report with figures in demo/"
	@echo "make examples   all examples in full, pictures in demo/"
	@echo "make test       the tests (make test-slow: the long statistical ones)"
	@echo "make bench      times, as ratios in one run"
	@echo "make exam       whether stated probabilities are true (benchmarks/certainty/README.md)"
	@echo "make docs       the site: docs/_build/html/index.html"
	@echo "make test-docs  the explorer in a real browser; needs an installed Chromium"
	@echo "make lint       ruff, mypy and the import graph;  make format  rewrites"

# A virtual environment without its interpreter is no environment: make it again.
ifeq (,$(wildcard $(BIN)/python))
.PHONY: $(VENV)/.installed
endif

# The stamp is as old as the last installation: editing pyproject.toml renews it.
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "l0anneal needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@# three examples read tables of ISLP; the package itself, with PyTorch, is not needed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'ISLP>=0.4,<0.5' \
	  || echo "ISLP is not installed: the examples on its data will be skipped" >&2
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/l0anneal reproduce --quick --out demo

examples: $(VENV)/.installed
	$(BIN)/python scripts/run_examples.py demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-slow: $(VENV)/.installed
	$(BIN)/python -m pytest -m slow

# Playwright drives the Chromium of this machine; it downloads none.
$(VENV)/.installed-browser: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[browser]'
	@touch $@

test-docs: $(VENV)/.installed-browser
	$(BIN)/python -m pytest -m browser tests/explorer

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/run.py

exam: $(VENV)/.installed
	$(BIN)/python benchmarks/certainty exam

docs: $(VENV)/.installed-docs
	@start=$$(date +%s); $(BIN)/python -m sphinx -b html -W --keep-going -n -q \
	  -d docs/_build/doctrees docs docs/_build/html \
	  && $(BIN)/python scripts/check_site.py docs/_build/html \
	  && echo "docs/_build/html/index.html, in $$(($$(date +%s) - start)) seconds"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/import_graph.py

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf docs/_build docs/auto_examples docs/code docs/reference/backreferences docs/reference/generated
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
