# Every target sets up what it needs, in a virtual environment of its own; `make help` lists them.

PYTHON ?= python3
VENV ?= .venv
PEERS ?= peers-lite
MINUTES ?= 4.5

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
BASE := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
WITH_PEERS := $(VENV)/.installed-$(PEERS)
BENCH_DIR := build/bench
ARM_DIR := build/arm
REPORT_DIR := build/report

# Else Make's own rules answer for a file that none of these makes, such as a misspelled list of peers.
MAKEFLAGS += --no-builtin-rules

.DEFAULT_GOAL := help
.PHONY: help demo test check check-slow check-models check-cuda check-arm check-package check-report lint types format bench docs golden clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /:/' | awk -F: '{printf "  make %-14s %s\n", $$1, $$2}'
	@echo "  PEERS=none leaves PyTorch and ONNX Runtime out; MINUTES=$(MINUTES) is the demo's tuning time"

demo: $(WITH_PEERS) $(VENV)/.installed-report ## tune ResNet-18 for this CPU, compare it with PyTorch and ONNX Runtime, show a report
	$(BIN)/ansor demo --model resnet18 --minutes $(MINUTES)

test: $(DEV) $(WITH_PEERS) ## run the tests, on all cores
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile

check: lint types test ## run everything that must pass before a commit

check-slow: $(DEV) $(WITH_PEERS) ## run the tests that take longest: whole runs, large networks (6 minutes)
	$(BIN)/python -m pytest -m slow

check-models: $(DEV) $(WITH_PEERS) $(VENV)/.installed-models ## run ONNX's, PyTorch's and the networks' suites (1 hour)
	$(BIN)/python -m tests.suites

check-cuda: $(DEV) ## compile 880 sampled GPU programs to machine code (15 minutes)
	ANSOR_CUDA_PROGRAMS=20 $(BIN)/python -m pytest tests/lowering/test_nvcc.py \
		tests/lowering/test_tensor_cores.py tests/lowering/test_tf32.py \
		-k "compile or instructions"

check-arm: $(DEV) ## run networks for Arm in qemu-aarch64; needs it and aarch64-linux-gnu-g++ (3 minutes)
	@mkdir -p $(ARM_DIR)
	$(BIN)/python -m pip freeze | grep '^apache-tvm' > $(ARM_DIR)/packages.txt
	$(PIP:install=download) --no-deps --only-binary=:all: --platform manylinux_2_28_aarch64 \
		--dest $(ARM_DIR) --requirement $(ARM_DIR)/packages.txt
	for wheel in $(ARM_DIR)/*.whl; do $(BIN)/python -m zipfile -e $$wheel $(ARM_DIR)/packages; done
	cp $(ARM_DIR)/packages/tvm/lib/libtvm_runtime.so $(ARM_DIR)/packages/tvm_ffi/lib/libtvm_ffi.so $(ARM_DIR)
	ANSOR_ARM_RUNTIME=$(ARM_DIR) QEMU_LD_PREFIX=$${QEMU_LD_PREFIX:-/usr/aarch64-linux-gnu} \
		$(BIN)/python -m pytest tests/frontend/test_arm_networks.py -rs

check-package: $(DEV) ## build the wheel and the source archive and try both in empty environments (5 minutes)
	$(BIN)/python -m tests.package

check-report: $(DEV) ## open the report of a ResNet-50 in Chromium; needs chromium and chromedriver (5 minutes)
	$(BIN)/ansor tune resnet50 --trials 60 --no-check --out $(REPORT_DIR)
	ANSOR_REPORT=$(REPORT_DIR) $(BIN)/python -m pytest tests/report/test_report_browser.py -rs

lint: $(DEV) ## check style and formatting
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

types: $(DEV) ## check types
	$(BIN)/python -m mypy

format: $(DEV) ## format the code and repair what can be repaired
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench: $(WITH_PEERS) ## run the benchmarks (about 10 minutes); results go to build/bench
	@mkdir -p $(BENCH_DIR)
	$(BIN)/python -m benchmarks.throughput --json $(BENCH_DIR)/throughput.json
	$(BIN)/python -m benchmarks.operators --json $(BENCH_DIR)/operators.json
	$(BIN)/python -m benchmarks.network --models resnet18 --peers torch,onnxruntime --minutes 5 --json $(BENCH_DIR)/network.json

docs: $(VENV)/.installed-docs ## build the documentation site in build/site; broken links are errors
	$(BIN)/python -m mkdocs build --strict

golden: $(DEV) $(WITH_PEERS) ## write the golden files of the tests anew
	$(BIN)/python -m pytest --update-golden

clean: ## remove the virtual environment and everything that was built
	rm -rf $(VENV) build ansor-out .mypy_cache .ruff_cache .pytest_cache *.egg-info

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml | $(BIN)/python
	@echo "installing ansor into $(VENV)"
	@$(PIP) --editable .
	@touch $@

$(DEV): $(BASE)
	@echo "installing the tools for development"
	@$(PIP) --editable ".[dev]"
	@touch $@

$(VENV)/.installed-none: $(BASE)
	@touch $@

$(VENV)/.installed-report: $(BASE)
	@echo "installing what a report needs"
	@$(PIP) --editable ".[report]" || echo "no report: its packages cannot be installed here"
	@touch $@

$(VENV)/.installed-models: $(WITH_PEERS)
	@echo "installing architectures of networks"
	@$(PIP) --editable ".[models]"
	@touch $@

$(VENV)/.installed-docs: $(BASE)
	@echo "installing the builder of the documentation"
	@$(PIP) --editable ".[docs]"
	@touch $@

# Peers are optional: without them the demo compares with the untuned network alone.
$(VENV)/.installed-peers $(VENV)/.installed-peers-lite: $(BASE)
	@echo "installing PyTorch and ONNX Runtime to compare with"
	@$(PIP) --editable ".[$(@:$(VENV)/.installed-%=%)]" || \
		echo "PyTorch or ONNX Runtime cannot be installed here: going on without"
	@touch $@
