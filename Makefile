# Two commands matter: `make book` and `make test`. `make help` lists the others.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help book quick paper record test quick-test check run sweep live zip dist bench beside cluster browser lock clean clean-book venv

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PROFILE ?= quick
JOBS ?= 2
# What `make record` runs.
RECORDED ?= participation_learning cloak_learning flame_learning checkin_learning
HOST := 127.0.0.1
PORT ?= 8000
# Words for Snakemake, such as `--executor slurm`.
SNAKEMAKE ?=
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS := 1
# Where it is set, every process of a build or a test compiles all modules anew: twice the time.
unexport PYTHONDONTWRITEBYTECODE
TORCH := $(shell sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements.lock)
# Before anything is built for it: can the place be listened at?
define LISTEN
import os, socket, sys
host, port = os.environ["HOST"], os.environ["PORT"]
try:
    socket.create_server((host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
except (OSError, OverflowError, ValueError) as fault:
    sys.exit(f"HOST and PORT must be an address of this machine and a free port in 0..65535, got {host}:{port} ({fault})")
endef
export LISTEN
# The PyTorch project's index of builds without CUDA.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target words; do \
	  printf '%-20s %s\n' "$$target" "$$words"; done

book: venv ## run the notebooks that are not current, build the book, print where it is (PROFILE=quick|paper JOBS=2)
	@$(BIN)/python -m flamebook.site.book.build --profile $(PROFILE) --jobs $(JOBS) $(if $(SNAKEMAKE),-- $(SNAKEMAKE))

quick: ## the book with small settings: minutes
	@$(MAKE) book PROFILE=quick

paper: ## the book with the sizes of the papers: much longer
	@$(MAKE) book PROFILE=paper

record: venv ## the runs at the sizes of the papers that pages show beside their own, kept in data/results: hours
	@$(BIN)/snakemake --cores $(JOBS) --config profile=paper keep=true --forcerun keep -- \
	  $(foreach name,$(RECORDED),data/results/$(name)/receipt.json)

test: book ## every check: style, types, doctests, tests, the built book in a browser
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary & types=$$!; \
	$(BIN)/python -m pytest -n 3 --dist worksteal -q --ignore tests/browser; wait $$types # types need one processor
	@$(MAKE) check # apart: what drives a browser keeps a loop running, beside which others cannot start theirs

quick-test: venv ## while you work: style, types, core mathematics; no book is needed
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m pytest -n 2 --dist worksteal -q tests/core tests/mechanisms tests/protocols tests/attacks flamelib

check: venv ## only the built book: links, figures, scripts, in a browser
	@$(BIN)/python -m pytest -n 3 --dist worksteal -q tests/browser

run: venv ## one notebook with parameters of your own: make run NOTEBOOK=blanket_histogram ARGS="-p epsilon=0.5"
	@$(BIN)/flamelib run $(NOTEBOOK) $(ARGS)

sweep: venv ## a grid of parameters: make sweep NOTEBOOK=blanket_histogram ARGS="-p epsilon=0.5,1"
	@$(BIN)/flamelib sweep $(NOTEBOOK) $(ARGS)

live: ## the book served here, its notebooks to run from their pages (PORT=8000; HOST=127.0.0.1: only this machine)
	@HOST='$(HOST)' PORT='$(PORT)' $(PYTHON) -c "$$LISTEN"
	@$(MAKE) book
	@exec $(BIN)/python -m flamebook.site.book.live --host $(HOST) --port $(PORT)

zip: book ## the book as one file that opens from disk, under _build
	@$(BIN)/python -m flamebook.site.book.release

dist: venv ## wheel and source archive under _build/dist, checked, installed alone and asked; workflows linted
	@bash .ci/dist

bench: venv ## measure the speeds that the page on speed and cost shows, whether or not they are current
	@$(BIN)/flamelib record benchmarks --again

beside: venv ## ask the peers of data/beside.txt, installed apart, the same again: the page on speed and cost
	@$(BIN)/flamelib record beside --again

cluster: venv ## a sweep and notebooks on a SLURM of one node, raised for it and taken down: minutes, as root on Debian
	@bash .ci/cluster

browser: ## install Chromium for the browser tests, where that is possible
	@if command -v chromium chromium-browser google-chrome >/dev/null; then echo "a browser is there"; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium >/dev/null; \
	elif [ -x $(BIN)/playwright ] && $(BIN)/playwright install chromium; then echo "playwright brought a browser"; \
	else echo "No browser could be installed here: install chromium with your system's package manager." >&2; exit 1; fi

lock: venv ## resolve the dependencies anew, keeping what still fits (UPGRADE=--upgrade takes the newest)
	@links=$$($(BIN)/pip config get global.find-links 2>/dev/null || true); \
	sed '/^torch==/d' requirements.lock > $(VENV)/new.lock; \
	$(BIN)/uv pip compile pyproject.toml --all-extras --quiet --no-header $(UPGRADE) \
	  $${links:+--find-links $$links} --output-file $(VENV)/new.lock >/dev/null; \
	sed 's/+cpu$$//' $(VENV)/new.lock > $(VENV)/clean.lock; mv $(VENV)/clean.lock requirements.lock; rm $(VENV)/new.lock
	@git --no-pager diff --stat requirements.lock

clean-book: ## forget the built book and every run
	@rm -rf _build/html _build/doctrees _build/runs _build/resume _build/src _build/work .snakemake

clean: ## forget everything that was made, the environment too
	@rm -rf _build build dist .snakemake .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made anew only when what it is made from differs from what it was made from. A mark says
# that an installation is at work: one that was killed is started over. So is one that was copied or moved with its
# clone, for its programs and the path to this code are those of the place where it was made.  A module is compiled when
# it is first imported: most never are, and one process compiling all takes as long as unpacking them.
venv:
	@place="$$(cat $(VENV)/place.txt 2>/dev/null || pwd -P)"; \
	if [ "$$place" = "$$(pwd -P)" ] && cat requirements.lock pyproject.toml | cmp -s - $(VENV)/installed.txt; then exit 0; fi; \
	echo "installing the environment into $(VENV)"; \
	if [ -e $(VENV)/installing ] || [ "$$place" != "$$(pwd -P)" ]; then rm -rf $(VENV); fi; \
	mkdir -p $(VENV); touch $(VENV)/installing; rm -f $(VENV)/installed.txt; \
	[ -x $(BIN)/python ] || $(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
	|| { echo "the lock is for Python 3.11, and $(PYTHON) is another: make PYTHON=python3.11" >&2; exit 1; }; \
	[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV); \
	pip="$(BIN)/python -m pip --disable-pip-version-check"; \
	if ! $$pip show -qq torch 2>/dev/null; then \
	  echo "  torch without CUDA"; \
	  $$pip install -qq --no-index --no-deps "$(TORCH)" 2>/dev/null \
	  || $$pip install -qq --no-deps --retries 0 --timeout 15 --index-url $(TORCH_INDEX) "$(TORCH)" 2>/dev/null \
	  || echo "  none was found; the usual one is taken"; \
	fi; \
	echo "  the packages of requirements.lock"; \
	$$pip install -q --no-compile -r requirements.lock 2> $(VENV)/pip.log || { grep -v '^WARNING' $(VENV)/pip.log >&2; exit 1; }; \
	$$pip install -q --no-deps --no-build-isolation -e . 2> $(VENV)/pip.log || { cat $(VENV)/pip.log >&2; exit 1; }; \
	pwd -P > $(VENV)/place.txt; cat requirements.lock pyproject.toml > $(VENV)/installed.txt; rm -f $(VENV)/installing
