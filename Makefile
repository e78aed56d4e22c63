# Every target does its own set-up: a virtual environment in .venv, tools and dependencies from the
# package index, a build of the C++ core. The machine needs python3 (3.11 or later) with pip, make
# and a C++ compiler. A second run only repeats what has changed.

PYTHON ?= python3
ARGS ?=
# Warnings of the compiler stop a build of a checkout; WERROR=OFF is for compilers yet to come.
WERROR ?= ON

VENV := .venv
PY := $(VENV)/bin/python
BIN := $(VENV)/bin
PIP := $(PY) -m pip --disable-pip-version-check --no-input
DONE := $(VENV)/done
BUILD := build/package
SETTINGS := --config-settings=build-dir=$(BUILD) \
            --config-settings=cmake.define.ARBOOST_WERROR=$(WERROR)
MODULES := $(sort $(shell find src/arboost -name '*.py'))
CPP_FILES := $(sort $(shell find cpp -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh'))
TEST_CPP := $(sort $(shell find tests -name '*.cpp' -o -name '*.h'))
PYTHON_DIRS := src tests bench examples tools docs
CHECKED_TEXT := $(PYTHON_DIRS) cpp .github .ci Makefile CMakeLists.txt pyproject.toml \
                $(wildcard *.md)

# A user's own module path must not shadow what is installed here.
unexport PYTHONPATH PYTHONHOME

# All targets share one environment, so no two of them may run at the same time.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
FORCE:
.PHONY: FORCE help demo test lint style types layers spelling docstrings warnings sanitize \
        sanitize-fits sanitize-cuda format bench bench-real docs wheel dev clean

help:  ## show this list
	@echo "make <target>, one of:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile
	@echo "ARGS='...' is passed to the command of the target, e.g. make test ARGS='-k binning'"

demo: $(DONE)/package $(DONE)/demo  ## compare, train, explain, save, load and report, on real flights
	@$(PY) examples/demo.py build/demo $(ARGS)

# One process for each core. Tests of a file share its fixtures, so they stay together. Files keep
# their order: few tests can take long, and the longest files must not come last.
test: $(DONE)/package $(DONE)/test $(DONE)/docs  ## run all tests
	@$(PY) -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

# `make -k lint` continues after a failure and shows all of them.
lint: style types layers spelling docstrings warnings  ## run all checks except the tests

style: $(DONE)/dev
	$(BIN)/ruff check $(PYTHON_DIRS)
	$(BIN)/ruff format --check $(PYTHON_DIRS)
	@$(BIN)/clang-format --dry-run -Werror $(CPP_FILES) $(TEST_CPP)

# Of the packages that tests need, some have types.
types: src/arboost/_core.pyi $(DONE)/dev $(DONE)/test
	$(BIN)/mypy

layers: $(DONE)/package $(DONE)/dev
	$(BIN)/lint-imports --no-logo
	$(PY) tools/check_includes.py

spelling: $(DONE)/dev
	$(BIN)/codespell $(CHECKED_TEXT)

docstrings: $(DONE)/package
	$(PY) tools/write_docstrings.py --check
	$(PY) tools/write_tables.py --check

# The package itself is built with warnings as errors; here are the compilers that have not built it.
# Without precompiled headers, so that missing includes show.
warnings: $(DONE)/package
	$(PY) tools/check_kernels.py $(BUILD)
	@failed=0; export PATH="$(CURDIR)/$(BIN):$$PATH"; \
	used=$$(realpath "$$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' $(BUILD)/CMakeCache.txt)"); \
	for compiler in g++ clang++; do \
	  path=$$(command -v $$compiler) || { echo "$$compiler is not here: skipped"; continue; }; \
	  [ "$$(realpath "$$path")" != "$$used" ] || continue; \
	  echo "== $$compiler -Werror"; \
	  cmake -S . -B build/warnings-$$compiler -G Ninja -DCMAKE_CXX_COMPILER=$$compiler \
	    -DCMAKE_BUILD_TYPE=Release -DARBOOST_WERROR=ON -DPython_EXECUTABLE="$(CURDIR)/$(PY)" \
	    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null && \
	  cmake --build build/warnings-$$compiler -- --quiet -k 0 && \
	  $(PY) tools/check_kernels.py build/warnings-$$compiler || failed=1; \
	done; exit $$failed

# Two builds of the core: AddressSanitizer with UBSan, and ThreadSanitizer.
sanitize: build/sanitize-address build/sanitize-thread $(DONE)/test  ## run tests and random fits under AddressSanitizer, UBSan and ThreadSanitizer
	@$(PY) tools/sanitize.py build/sanitize-address $(ARGS)
	@$(PY) tools/sanitize.py build/sanitize-thread $(ARGS)

# The part of it that every change must pass.
sanitize-fits: build/sanitize-address $(DONE)/test  ## grow random trees under AddressSanitizer and UBSan, for a minute
	@$(PY) tools/sanitize.py build/sanitize-address --fits --seconds 60 $(ARGS)

sanitize-cuda: $(DONE)/package  ## run small fits on a GPU under compute-sanitizer
	@$(PY) tools/sanitize_cuda.py $(ARGS)

build/sanitize-address build/sanitize-thread: $(DONE)/build FORCE
	@echo "== core with $(@F)"
	@export PATH="$(CURDIR)/$(BIN):$$PATH"; \
	cmake -S . -B $@ -G Ninja -DCMAKE_CXX_COMPILER=$${CXX:-g++} -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_CXX_FLAGS_RELEASE="-O1 -g1" -DARBOOST_SANITIZE=$(@:build/sanitize-%=%) \
	  -DPython_EXECUTABLE="$(CURDIR)/$(PY)" >/dev/null && \
	cmake --build $@ -- --quiet

format: $(DONE)/dev  ## format all sources, and write the parameter texts into docstrings and pages
	$(BIN)/ruff check --fix-only $(PYTHON_DIRS)
	$(BIN)/ruff format $(PYTHON_DIRS)
	$(BIN)/clang-format -i $(CPP_FILES) $(TEST_CPP)
	$(PY) tools/write_docstrings.py
	$(PY) tools/write_tables.py

bench: $(DONE)/package $(DONE)/bench  ## compare with the peers; results go to bench/results
	@$(PY) bench/run_all.py $(ARGS)

bench-real: $(DONE)/package $(DONE)/bench  ## compare with the peers on the real tables of a data folder
	@$(PY) bench/bench_real.py --page docs/benchmarks/real_tables.md --picture docs/images/real.svg $(ARGS)

docs: $(DONE)/package $(DONE)/docs  ## build the site of the documentation into build/site
	@$(PY) tools/docs_site

wheel: $(DONE)/build  ## build the wheel and the source archive into dist, and check them
	@rm -rf dist
	@$(PIP) wheel --quiet --no-build-isolation --no-deps $(SETTINGS) --wheel-dir dist .
	@$(PY) -c "from scikit_build_core.build import build_sdist; build_sdist('dist')"
	@$(PY) tools/check_dist.py dist

dev: $(DONE)/package $(DONE)/test $(DONE)/dev  ## set up for development, with the git hooks
	$(BIN)/pre-commit install

clean:  ## remove all builds, caches and the environment
	rm -rf $(VENV) build dist wheelhouse src/arboost/_core.pyi
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- set-up: a file in .venv/done says that a step is done ----

$(DONE)/venv:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { \
	  echo "$(PYTHON) does not run or is older than Python 3.11: try make PYTHON=python3.12"; exit 1; }
	@echo "== virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { \
	  $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(PY) install pip; }
	@mkdir -p $(DONE) && touch $@

$(DONE)/build: pyproject.toml $(DONE)/venv
	@echo "== build tools and dependencies"
	@$(PY) tools/requirements.py build run >$(DONE)/build.txt
	@$(PIP) install --quiet -r $(DONE)/build.txt
	@touch $@

# An editable install knows the Python files by name, so it is made again when one comes or goes.
$(DONE)/modules: $(DONE)/venv FORCE
	@echo "$(MODULES)" | cmp -s - $@ || echo "$(MODULES)" >$@

# Python sources are used in place; the core is built again when its sources change.
$(DONE)/package: $(DONE)/build $(DONE)/modules CMakeLists.txt $(CPP_FILES)
	@echo "== arboost with its C++ core"
	@$(PIP) install --quiet --no-build-isolation --no-deps $(SETTINGS) --editable .
	@touch $@

# The type checker looks for the core's stub next to the sources.
src/arboost/_core.pyi: $(DONE)/package
	@cp "$$($(PY) -c "import sysconfig; print(sysconfig.get_path('platlib'))")/arboost/_core.pyi" $@

$(DONE)/test $(DONE)/dev $(DONE)/bench $(DONE)/docs $(DONE)/demo: $(DONE)/build
	@echo "== tools: $(@F)"
	@$(PY) tools/requirements.py $(@F) >$@.txt
	@$(PIP) install --quiet -r $@.txt
	@touch $@
