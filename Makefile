# make demo | test | test-settings | gpu-test | smoke | evidence | lint | readme | docs | venv | clean
# PYTHON=python3.12 chooses the interpreter of a new .venv, WORKERS the processes that run tests.
# make evidence runs what recipes/evidence.txt lists and commits the records; with STATUS=1 it only says what is left.
PYTHON ?=
WORKERS ?= 2

BIN := .venv/bin
STAMP := .venv/.installed
DOCS := .venv/.docs
NOTEBOOKS := $(patsubst docs/%.ipynb,docs/generated/%.md,$(wildcard docs/notebooks/*.ipynb))

.PHONY: demo test test-settings gpu-test smoke evidence lint readme docs venv clean

demo: $(STAMP)
	$(BIN)/python -m seqstruct.plots.demo

# bytecode is kept, whatever the environment says: tests start Python more than a hundred times
test: $(STAMP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -q -m "not slow" -n $(WORKERS) --dist worksteal

test-settings: $(STAMP)
	WORKERS=$(WORKERS) .ci/settings.sh

gpu-test: $(STAMP)
	$(BIN)/python -m pytest -q -rs tests/gpu

smoke: $(STAMP)
	$(BIN)/python .ci/smoke.py

evidence: $(STAMP)
	$(BIN)/python -m seqstruct.harness.evidence $(if $(STATUS),--status,--commit)

lint: $(STAMP)
	$(BIN)/ruff check .
	@if command -v shellcheck >/dev/null; then \
	  git ls-files '*.sh' '.ci/run' | xargs shellcheck -x -P SCRIPTDIR; \
	else echo "shellcheck is not installed: shell scripts were not checked"; fi

readme: $(STAMP)
	$(BIN)/python .ci/readme.py

docs: $(DOCS) $(NOTEBOOKS)
	$(BIN)/python .ci/docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

docs/generated/notebooks/%.md: docs/notebooks/%.ipynb .ci/notebooks.py | $(DOCS)
	$(BIN)/python .ci/notebooks.py $*

$(DOCS): $(STAMP)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[docs]'
	@touch $@

venv: $(STAMP)

$(STAMP): setup.py pyproject.toml constraints.txt .ci/venv.sh
	.ci/venv.sh "$(PYTHON)"
	@touch $@

clean:
	rm -rf .venv build dist site docs/generated *.egg-info .pytest_cache .ruff_cache
