# Everything runs in a virtual environment inside the clone; `make help` lists the targets.
# Needed: python3 (with venv), make, gcc.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
# The examples that draw into --output.
EXAMPLES = train_digits hessian_free hamiltonian gaussian_process ode_parameters implicit_layer \
	profile_network custom_op graph_network poisson
SANITIZED_TESTS ?= codegen cvm sparse scan/test_native.py
SANITIZED_GPU_TESTS ?= native_examples kernels indexing running sorting windows random functions loops sparse_products merging
# The library of C++ is there before SciPy throws an exception, which the sanitizer follows; kernels
# are linked with no library.
SANITIZERS = $(foreach name,libasan.so libubsan.so libstdc++.so.6,$$(gcc -print-file-name=$(name)))
SANITIZE = -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined -g

# PyMC's series needs a later Python than symcomp does.
PYMC_PYTHON ?= $(firstword $(wildcard $(HOME)/.pyenv/versions/3.12*/bin/python3.12) python3.12)
PYMC_VENV ?= .venv-pymc

# Tests start hundreds of processes, each of which would compile the same modules again.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet
# A process that has no tests left takes some of another's, which may have the slow ones.
IN_PARALLEL = -n $(WORKERS) --dist worksteal
# What an installation depends on: an edited Cython module is compiled again, an edited .py is not.
INSTALLED_FROM := pyproject.toml setup.py $(wildcard cvm/*.pyx cvm/*.pxi cvm/*.h cvm/*/*.[ch] \
	symcomp/codegen/*.h symcomp/codegen/*/*.h symcomp/codegen/ufunc_module.py symcomp/codegen/functions/*.py)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test tests check golden pymc gpu gpu-emu gpu-sanitize fuzz sanitize processors lint types docs references train examples \
	bench dist clean distclean interpreter

help:
	@echo 'make test       everything that CI runs: lint, types, documentation, all tests'
	@echo 'make check      under a minute: lint, types, the tiny tests, layers and sizes'
	@echo 'make golden     write tests/golden/*.txt, what the compiler makes of golden functions, again'
	@echo 'make pymc       install PyTensor, PyMC and nutpie (Python 3.12), run the tests of mode SYMCOMP'
	@echo 'make gpu-emu    the tests of devices on the emulator, and kernels compiled by nvcc and NVRTC'
	@echo '                for all architectures (a quarter of an hour)'
	@echo '                and a report of their registers, into build/gpu_registers.txt'
	@echo 'make gpu-sanitize  tests of the emulator with the sanitizer of addresses (ten minutes)'
	@echo 'make gpu        with a card: its tests, kernels watched by compute-sanitizer, speed beside'
	@echo '                PyTorch and CuPy, into build/gpu_report.md (under ten minutes)'
	@echo 'make fuzz       the property-based tests, on new examples'
	@echo 'make sanitize   the tests of kernels and of the machine, with the sanitizers of addresses'
	@echo '                and behaviour (three quarters of an hour)'
	@echo 'make processors all tests with the code that libraries and kernels have for x86-64-v2, -v3'
	@echo '                and -v4; skips what this processor cannot do (an hour)'
	@echo 'make docs       the documentation, into docs/_build/html'
	@echo 'make train      install what the examples need and train on the digits'
	@echo 'make examples   run every example, and draw the pictures of the gallery (some minutes)'
	@echo 'make bench      speed on one core, into docs/speed.md (a few minutes)'
	@echo 'make dist       source archive and wheel, into dist/'
	@echo 'make clean      delete what was built; make distclean: the environment too'
	@echo
	@echo 'PYTHON=python3.12   the interpreter of a new environment (now: $(PYTHON))'
	@echo 'VENV=.venv          the environment (now: $(VENV))'
	@echo 'PEERS=FILE          lines of others, to be put beside by make bench'
	@echo 'WORKERS=2           how many processes run the tests (now: $(WORKERS))'

test: $(VENV)/.installed-tools
	$(MAKE) --jobs=$(WORKERS) --output-sync $(VENV)/.installed-test lint types
	$(MAKE) --jobs=2 references tests

# Sphinx leaves a processor idle half of its time, so tests run beside it.
tests: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(IN_PARALLEL)

check: lint types
	$(BIN)/python -m pytest -q -n 0 tests/tiny tests/test_layers.py tests/test_sizes.py

golden: $(VENV)/.installed-test
	$(BIN)/python -m symcomp.tests.golden

pymc: $(PYMC_VENV)/.installed-pymc
	$(PYMC_VENV)/bin/python -m pytest $(IN_PARALLEL) tests/pytensor_backend tests/pymc

gpu-emu: $(VENV)/.installed-test
	rm -rf build/gpu_kernels
	mkdir -p build/gpu_kernels
	SYMCOMP_ALL_ARCHS=1 SYMCOMP_KEEP_KERNELS=build/gpu_kernels \
		$(BIN)/python -m pytest $(IN_PARALLEL) tests/gpu
	$(BIN)/python tools/gpu_kernels.py build/gpu_kernels build/gpu_registers.txt

gpu-sanitize: $(VENV)/.installed-test
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$(SANITIZERS)" SYMCOMP_ALL_ARCHS=1 \
	SYMCOMP_FLAGS='cflags=-fsanitize=address -g' \
		$(BIN)/python -m pytest -q $(IN_PARALLEL) $(SANITIZED_GPU_TESTS:%=tests/gpu/test_%.py)

gpu: $(VENV)/.installed-test
	$(BIN)/python -c 'import pycuda' || $(BIN)/python -m pip install --quiet --editable '.[cuda]'
	$(BIN)/python tools/gpu_report.py build/gpu_report.md

fuzz: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q $(IN_PARALLEL) -m hypothesis --hypothesis-profile=default

# The machine is built again with them, apart; the C that tests generate has them by its flags.
# Python itself is built without them, so that the first library must be theirs.
sanitize: $(VENV)/.installed-test
	rm -rf build/sanitized
	CFLAGS='$(SANITIZE) -O0' $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation \
		--target build/sanitized .
	cd build/sanitized && \
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$(SANITIZERS)" \
	SYMCOMP_FLAGS='kernels=False,cc=gcc,cflags=$(SANITIZE)' $(abspath $(BIN))/python -m pytest -q \
		$(IN_PARALLEL) -c $(CURDIR)/pyproject.toml --rootdir . $(SANITIZED_TESTS:%=symcomp/tests/%)

processors: $(VENV)/.installed-test
	$(BIN)/python tools/processors.py -q $(IN_PARALLEL)

lint: $(VENV)/.installed-tools
	$(BIN)/ruff check .
	$(BIN)/python tools/prose.py

types: $(VENV)/.installed-tools
	$(BIN)/python tools/mypy_view.py
	$(BIN)/mypy

docs: $(VENV)/.installed-test
	$(BIN)/sphinx-build -q -W --keep-going -j $(WORKERS) -b html docs docs/_build/html

# Reads all pages and follows all references, but writes no page: two thirds of the time.
references: $(VENV)/.installed-test
	$(BIN)/sphinx-build -q -W --keep-going -j $(WORKERS) -b dummy docs docs/_build/references

train: $(VENV)/.installed-examples
	$(BIN)/python examples/train_digits.py

examples: $(VENV)/.installed-examples
	mkdir -p build
	export OMP_NUM_THREADS=1; for name in $(EXAMPLES); do \
		echo "$$name:"; $(BIN)/python examples/$$name.py --output docs/images || exit 1; \
	done
	$(BIN)/python examples/rosenbrock_newton.py
	test ! -x $(PYMC_VENV)/bin/python || \
		$(PYMC_VENV)/bin/python examples/radon.py --output docs/images
	OMP_NUM_THREADS=1 $(BIN)/python examples/char_rnn.py --steps 1000 --state build/char_rnn.npz --output docs/images

bench: $(VENV)/.installed-test
	mkdir -p build
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 taskset -c 0 \
		$(BIN)/python benchmarks/runner.py > build/symcomp.jsonl
	$(BIN)/python benchmarks/figures.py build/symcomp.jsonl $(PEERS)

dist: $(VENV)/.installed-test
	$(BIN)/python -m build

# Lint and types need no built module, so they run beside the compiler. What is not imported is not
# compiled to bytecode.
$(VENV)/.installed-tools: pyproject.toml tools/requirements.py | interpreter
	$(BIN)/python tools/requirements.py test docs > $(VENV)/requirements.txt
	$(PIP) --no-compile --requirement $(VENV)/requirements.txt
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed-tools $(INSTALLED_FROM)
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.installed-examples

$(VENV)/.installed-examples: $(INSTALLED_FROM) | interpreter
	$(PIP) --editable '.[examples]'
	@touch $@

$(PYMC_VENV)/.installed-pymc: $(INSTALLED_FROM)
	test -x $(PYMC_VENV)/bin/python || $(PYMC_PYTHON) -m venv $(PYMC_VENV)
	$(PYMC_VENV)/bin/python -m pip install --quiet --editable '.[test,nutpie]'
	@touch $@

# An environment of another version than the one asked for is refused, not used in silence.
interpreter:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
ifneq ($(filter command line environment,$(origin PYTHON)),)
	@version='import sys; print(*sys.version_info[:2])'; \
	if [ "$$($(PYTHON) -c "$$version")" != "$$($(BIN)/python -c "$$version")" ]; then \
		echo '$(VENV) is of another Python than $(PYTHON): make distclean, or add VENV=...' >&2; \
		exit 1; \
	fi
endif

clean:
	rm -rf build dist *.egg-info docs/_build docs/generated
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -path './.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f cvm/*.so symcomp/codegen/*.so $(VENV)/.installed-*

distclean: clean
	rm -rf '$(VENV)' '$(PYMC_VENV)'
