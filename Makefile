# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0

# The commands for everyday work. Each target runs a script in tools/.

PYTHON ?= python3
VENV := $(CURDIR)/.venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-deep quick lint format generated docs doctor clean distclean

help: ## print this list
	@echo "west-tinyml: compiles ONNX and TFLite models to plain C inside west build and pio run"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## install system packages, .venv and the west workspace (demo and test do this too)
	@$(PYTHON) -m tools.bootstrap

demo: setup ## build a model into an application and run it on an emulated Cortex-M3
	@$(VENV)/python -m tools.demo

test: ## check style and types and run all tests; tiers that cannot run here are listed at the end
	@$(PYTHON) -m tools.bootstrap --for-tests
	@$(VENV)/python -m tools.check

test-deep: ## the same with whole campaigns instead of a tenth of them; takes hours
	@$(PYTHON) -m tools.bootstrap --for-tests
	@$(VENV)/python -m tools.check --deep

quick: ## check what has changed and run the host tests that it reaches, within two minutes
	@$(PYTHON) -m tools.bootstrap
	@$(VENV)/python -m tools.quick

lint: setup ## check style and types only
	@$(VENV)/python -m tools.lint

format: setup ## format Python and C
	@$(VENV)/python -m tools.lint --fix

generated: setup ## write generated files again: those that take seconds; with ALL=1 all of them
	@$(VENV)/python -m tools.generated $(if $(ALL),--all)

docs: setup ## build the documentation site in build/docs/html
	@$(VENV)/python -m tools.docs

doctor: setup ## show what is installed, what is missing and how to install it
	@$(VENV)/tinyml doctor

clean: ## remove build output from the tree
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache twister-out* samples/*/build samples/*/.pio
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## also remove .venv and this clone's west workspace
	@$(PYTHON) -m tools.bootstrap --remove
