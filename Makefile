# Everything bootstraps itself: a fresh machine needs Python >= 3.11 (with pip and venv) and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Without cached bytecode every process that a test starts compiles the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup torch demo test quick coverage mutation check bench soak docs pages format clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "CAFe needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing CAFe and what its tests need into $(VENV) (about a minute, once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

setup: $(READY)  ## make .venv with everything that tests need

torch: $(READY)  ## add PyTorch, for its learner, its tests and examples/cnn.py
	@$(BIN)/python -c 'import torch' 2>/dev/null || { echo "Installing PyTorch ..."; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch; }

demo: $(READY)  ## plan for a fleet of phones, train under the plan and three policies, write a report
	@$(BIN)/cafe demo --output demo-report

# Two workers more than cores: the two that run the real federations mostly wait.
WORKERS = $$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 2)')

test: $(READY)  ## run every test
	$(BIN)/python -m pytest -n $(WORKERS)

quick: $(READY)  ## run the fast tests: no real federation, nothing marked slow
	$(BIN)/python -m pytest -n auto -m 'not slow and not federation'

coverage: $(READY)  ## run every test and measure branch coverage; fails below 95 %
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term --cov-report=html:coverage-report

mutation: $(READY)  ## mutation testing of theory, books and policies: a sample (ARGS='--sample 0': all, takes many hours)
	@$(BIN)/python -c 'import cosmic_ray' 2>/dev/null || { echo "Installing Cosmic Ray ..."; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt cosmic-ray; }
	$(BIN)/python -m tests.mutation $(ARGS)

check: $(READY)  ## formatting, lint, types, docs with warnings as errors
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) --no-print-directory docs

docs: $(READY)  ## build the documentation into docs/_build
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html

pages: $(READY)  ## renew what pages copy from other files and from docstrings
	$(BIN)/python docs/renew.py

bench: torch  ## speed of simulating against the matrix product (PEERS=1: and others); growth up to a million clients
	$(BIN)/python -m benchmarks $(if $(PEERS),--peers)

soak: $(READY)  ## a real federation for a quarter of an hour, with faults of all parts and connections; writes studies/soak
	$(BIN)/python -m tests.support.flower.soak --output studies/soak

format: $(READY)  ## let ruff rewrite the files
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what the targets made
	rm -rf $(VENV) docs/_build demo-report paper-quick coverage-report .coverage* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
