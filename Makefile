# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0

# Everything a newcomer types. The work is in tools/: this file only says which script.

PYTHON ?= python3
VENV := $(CURDIR)/.venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format doctor clean distclean

help: ## show this text
	@echo "west-tinyml: compiles ONNX and TFLite models to plain C inside west build and pio run"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## system packages, .venv and the west workspace (demo and test do this by themselves)
	@$(PYTHON) -m tools.bootstrap

demo: setup ## from a model file to a running image on an emulated Cortex-M3
	@$(VENV)/python -m tools.demo

test: ## style, types and the whole suite; a tier that cannot run here is named at the end
	@$(PYTHON) -m tools.bootstrap --for-tests
	@$(VENV)/python -m tools.check

lint: setup ## style and types only
	@$(VENV)/python -m tools.lint

format: setup ## lay out Python and C the way lint wants it
	@$(VENV)/python -m tools.lint --fix

doctor: setup ## what is installed, what is missing and how to get it
	@$(VENV)/tinyml doctor

clean: ## remove what builds left in the tree
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache twister-out* samples/*/build samples/*/.pio
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## also remove .venv and this clone's west workspace
	@$(PYTHON) -m tools.bootstrap --remove
