# Two commands do everything on a machine with git, make and python3: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Many tests wait for processes of theirs, so two share a processor.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))))
# Real agents that `make conformance` drives, and how many at once: they mostly wait.
CLIS ?= claude codex
AT_ONCE ?= 4

.PHONY: demo test lint types unit exhaustive fuzz format bench bench-quick bench-supervisor rules ui screenshots conformance matrix examples clean

demo: $(READY)
	$(BIN)/unstuck demo

test: lint types unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

# Where Python is told to write no bytecode, every command that the tests start would read the sources anew, and every
# worker would rewrite all assertions.
unit: export PYTHONDONTWRITEBYTECODE :=
unit: $(READY)
	$(BIN)/python -m compileall -q src/unstuck
	$(BIN)/python -m pytest -n $(WORKERS)

# The rows of long tables that `make test` leaves out: the supervisor killed at every place that there is.
exhaustive: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) -m exhaustive

# Bad bytes in everything that is read, for longer than `make test` has; ROUNDS for each kind of input, SEED to see one again.
ROUNDS ?= 300
SEED ?= $(shell date +%s)
fuzz: $(READY)
	@echo "seed $(SEED)"
	UNSTUCK_FUZZ_ROUNDS=$(ROUNDS) UNSTUCK_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -n $(WORKERS) --timeout 3600 tests/fuzz

# Real agents against a scripted model, on loopback and nowhere else. Needs Node 20; see docs/conformance.md.
conformance: $(READY)
	$(BIN)/python tests/conformance/clis.py $(CLIS)
	$(MAKE) matrix

# The same with the agents that are already there; those that are not are SKIPPED, with the reason.
matrix: $(READY)
	$(BIN)/python tests/conformance/island.py $(BIN)/python -m pytest -n $(AT_ONCE) -m conformance -rfEs tests/conformance

# Our recovery in other people's loops, each with the real library and a scripted model. The libraries are large, so they
# get a folder of their own.
examples:
	$(PYTHON) -m venv $(VENV)-examples
	$(VENV)-examples/bin/python -m pip install --quiet --disable-pip-version-check -e ".[mcp,examples]" "hypothesis>=6.100" "pytest>=8" "pytest-timeout>=2.3" "pytest-xdist>=3.6"
	$(VENV)-examples/bin/python -m pytest -n0 -m examples -rfEs tests/examples

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The rules that a diagnosis loads, and what secrets look like, are compiled from the TOML files of the catalogue; how much
# ordinary words weigh is learned from benchmarks/training.
rules: $(READY)
	$(BIN)/python scripts/compile_catalog.py
	$(BIN)/python -m benchmarks.training.learn_words

# The page that `unstuck ui` serves is built from web/ui into the package; users need neither Node nor this.
ui:
	cd web/ui && npm install --no-package-lock --no-audit --no-fund --silent
	cd web/ui && node build.mjs

# The pictures in docs/pictures; needs Debian's chromium, and makes smaller files where pngquant and optipng are.
screenshots: $(READY)
	$(BIN)/python scripts/screenshots.py

bench: $(READY)
	$(BIN)/unstuck bench

# Supervisors side by side on the same seeds, see docs/benchmark.md; OPTIONS="--pathology liar --policy standard --seeds 5".
bench-supervisor: $(READY)
	$(BIN)/python -m benchmarks.supervisor --html supervisors.html --json supervisors.json $(OPTIONS)

# One seed, one project, no peers: under five minutes on two cores.
bench-quick: $(READY)
	$(BIN)/python -m benchmarks.supervisor --quick $(OPTIONS)

# The stamp is newer than both files only after a complete install, so a broken one starts over.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV) || { echo "unstuck needs Python 3.11 with venv (Debian: apt install python3-venv)" >&2; exit 69; }
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	$(BIN)/python -m compileall -q src/unstuck
	touch $(READY)

clean:
	rm -rf $(VENV) $(VENV)-examples .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
