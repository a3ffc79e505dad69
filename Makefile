PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TEST_POOLS := qwen2.5-coder-1.5b__dapo qwen2.5-coder-1.5b__gsm8k qwen2.5-coder-1.5b__math500

.PHONY: install demo test lint docs bench

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): a minute or two, once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[train,serve,plot,local,dev]'
	@touch $@

demo: install
	$(BIN)/suffice evaluate $(TEST_POOLS)

test: install lint
	$(BIN)/pytest

lint: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: install
	$(BIN)/typer suffice.cli utils docs --name suffice --title "The command line" --output docs/cli.md

bench: install
	$(BIN)/python benchmarks/replay.py
