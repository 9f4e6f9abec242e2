# make            set up, make every figure and table at quick effort, say where the page is
# make test       set up, run the tests, but for those of whole systems
# make test-system  set up, run those: with a SLURM, a browser, the site, runs that are killed
# make test-all   set up, run both kinds at the same time, as CI does
# make coverage   set up, run `make test`'s tests, say which lines of which modules none of them runs
# make engines    set up, install DuckDB and Polars in .venv/engines, run the tests that need them
# make mutants    set up, plant small faults, say how many the tests see: MUTANTS="--rooms ... --each 10"
# make docs       set up, build the documentation site, say where it is
# make EFFORT=paper CORES=8   the papers' sizes and trial counts, on 8 cores

EFFORT ?= quick
CORES ?= 2
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo $$python && break; done)

# Modules are compiled once, not by each of the processes that jobs and tests start.
export PYTHONDONTWRITEBYTECODE =

.PHONY: reproduce test test-system test-all coverage engines mutants docs lint setup clean

reproduce: setup
	.venv/bin/snakemake --cores $(CORES) --config effort=$(EFFORT)
	@echo "Done: open results/$(EFFORT)/index.html"

# A process of tests that dies fails its test and ends the run.
PYTEST = -m pytest -n $(CORES) --no-loadscope-reorder --max-worker-restart 0

test: setup
	.venv/bin/python $(PYTEST) --dist loadfile -m "not system"

# Many tests of whole systems wait for runs that are killed or resumed, so there is one process more than cores. Tests
# of SLURM mostly wait. They run at the same time, and their output comes last. Files without tests of whole systems are
# not collected: that takes each process 6 s.
test-system: CHOSEN = -m system $(filter-out tests/workflow/slurm/%,$(shell grep -rl --include='test_*.py' 'mark[.]system' tests))
test-all: CHOSEN = --ignore=tests/workflow/slurm
test-system test-all: setup
	@mkdir -p logs
	.venv/bin/python -m pytest tests/workflow/slurm > logs/test_slurm.log 2>&1 & \
	trap "kill $$!" INT TERM; \
	.venv/bin/python $(PYTEST) -n $$(($(CORES) + 1)) --dist loadfile $(CHOSEN); \
	others=$$?; \
	wait $$!; slurm=$$?; cat logs/test_slurm.log; exit $$((others + slurm))

coverage: setup
	.venv/bin/coverage erase
	.venv/bin/coverage run $(PYTEST) --dist loadfile -m "not system"
	.venv/bin/coverage combine --quiet
	.venv/bin/coverage report

engines: .venv/engines/ready
	.venv/engines/bin/python -m pytest tests/library/sketches/test_engines.py

# An environment above that of the lock, which stays as it is.
.venv/engines/ready: .venv/ready
	.venv/bin/python -m venv --clear --without-pip .venv/engines
	.venv/bin/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
	> "$$(echo .venv/engines/lib/python*/site-packages)/locked.pth"
	.venv/bin/python -c "import tomllib; groups = tomllib.load(open('pyproject.toml', 'rb')); \
	print(*groups['dependency-groups']['engines'])" | \
	xargs .venv/bin/python -m pip --python .venv/engines/bin/python install --quiet --disable-pip-version-check
	@touch $@

mutants: setup
	.venv/bin/python benchmarks/mutants.py $(MUTANTS)

docs: setup
	.venv/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Done: open docs/_build/html/index.html"

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/codespell
	.venv/bin/repo-review .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/snakefmt --check workflow examples
	.venv/bin/snakemake --lint

# What has no wheel for a new Python is compiled.
define CAN_COMPILE
import os, shutil, sys, sysconfig
header = os.path.join(sysconfig.get_path("include"), "Python.h")
compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
sys.exit(sys.version_info >= (3, 14) and not (shutil.which(compiler) and os.path.exists(header)))
endef
export CAN_COMPILE

setup: .venv/ready

# Modules are compiled when they are first imported, not all at once: half a minute less.
.venv/ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { \
	echo "privclust needs Python 3.11 or newer with venv: install one, or name it: make PYTHON=/path/to/python3.14"; \
	exit 1; }
	@$(PYTHON) -c "$$CAN_COMPILE" || { \
	echo "Python 3.14 has no wheel of immutables, which Snakemake needs: install a C compiler and Python's headers" \
	"first (Debian: apt-get install gcc libc6-dev python3-dev), or name an older Python: make PYTHON=python3.13"; \
	exit 1; }
	$(PYTHON) -m venv --clear .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --requirement requirements.lock
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

clean:
	rm -rf results/*/ logs benchmarks/out docs/_build .snakemake
