# Every target builds its own environment in .venv; `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help demo test test-slow engines lint mutants bench format wheel clean java kernels all-kernels

BIN   := .venv/bin
STAMP := .venv/installed

MINUTES := .venv/minutes
export TOCSIN_MINUTES := $(abspath $(MINUTES))

help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: java kernels ## Watch Tocsin match a generated marketplace
	$(BIN)/tocsin demo

test: java all-kernels ## Everything a change must pass: lint, types, import law, documentation examples, tests
	@rm -f $(MINUTES)
	@$(MAKE) --no-print-directory -j 2 lint engines
	$(BIN)/python -m pytest -n 2 --dist loadgroup --durations 15 -m "not slow" --ignore tests/index; \
	  status=$$?; $(BIN)/python scripts/minutes $(MINUTES); exit $$status

engines: all-kernels # The engines first, beside lint
	$(BIN)/python -m pytest -q -n 2 -m "not slow" tests/index

test-slow: java all-kernels ## The long soaks of ROOM, or of every room: at most 40 minutes each, and the next call goes on
	$(BIN)/python scripts/soak $(ROOM)

mutants: all-kernels ## Change lines of ROOM at random and see whether its tests notice: make mutants ROOM=space
	$(BIN)/python scripts/mutants $(ROOM)

lint: $(STAMP) ## Style, types and the import law
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_import_law.py

bench: kernels ## Measure this machine
	$(BIN)/tocsin bench load

format: $(STAMP) ## Rewrite the sources in the house format
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

wheel: $(STAMP) ## Build the wheel with native kernels for Linux on x86-64, in dist
	@scripts/wheel

clean: ## Remove the environment and everything generated
	rm -rf .venv build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +
	rm -f src/tocsin/kernels/native/*.abi3.so

kernels: $(STAMP) # Native code of the product's kernels, built for this machine unless it is there
	@$(BIN)/python -m tocsin.kernels.native.prepare product

all-kernels: $(STAMP) # The same, and that of all other kernels
	@$(BIN)/python -m tocsin.kernels.native.prepare product covering papers

java: # Spark needs a JDK
	@scripts/java

$(STAMP): pyproject.toml constraints.txt scripts/environment
	@scripts/environment
	@touch $@
