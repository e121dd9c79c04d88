# Two commands matter: `make demo` and `make test`. Each does its own set-up.
VENV := .venv
BIN := $(VENV)/bin
PYTHON := python3
NEW_ENOUGH := import sys; sys.version_info >= (3, 11) or sys.exit("error: $(PYTHON) is Python %d.%d, and Headgate needs \
  3.11 or newer: name one, as in make PYTHON=python3.12" % sys.version_info[:2])
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.ready
LOCKS := $(addprefix locks/,build.txt operator.txt spark.txt demo.txt)
PIP_INSTALL = $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check
# What is imported is compiled once and not by each of the hundreds of processes of a demo or of the tests: pip leaves it
# to the first import, and some environments have Python forget it.
unexport PYTHONDONTWRITEBYTECODE
SHIM := $(shell find spark_jobs/shim -name '*.java' -o -name 'build.py')

.PHONY: help setup tools programs jars classes images demo demo-kafka demo-live test test-quick test-door lint lint-style lint-types lint-layers lint-generated lint-locks lint-holes lock audit generate bench bench-local bench-operator bench-kafka bench-door bench-backlog bench-alternatives bench-live chaos soak test-spark-versions test-object-store dist docs clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 24

# What runs a job, governed or not. Nothing comes in that the locks do not have, at a version and with a digest that
# they have.
$(RUNS): pyproject.toml $(LOCKS) $(SHIM)
	@echo "Setting up $(VENV): a minute or two, once"
	@test -x $(BIN)/python || { $(PYTHON) -c '$(NEW_ENOUGH)' && $(PYTHON) -m venv $(VENV); }
	$(PIP_INSTALL) --require-hashes -r locks/build.txt
	$(PIP_INSTALL) --require-hashes --no-build-isolation $(LOCKS:%=-r %)
	$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	touch $@

$(STAMP): $(RUNS) locks/test.txt
	$(PIP_INSTALL) --require-hashes --no-build-isolation -r locks/test.txt
	$(BIN)/python -m pip check --disable-pip-version-check
	touch $@

setup: $(STAMP)  ## Make .venv with everything; quick when it is there

lint: lint-style lint-types lint-layers lint-generated lint-locks lint-holes  ## Style, types, layers, generated files, locks, licences; known holes if there is a network

lint-style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-types: setup
	$(BIN)/mypy operator/headgate spark_jobs/headgate_contract spark_jobs/headgate_spark charts/generate locks docs

lint-layers: setup
	$(BIN)/lint-imports

lint-generated: setup
	$(BIN)/headgate crd --check crds
	$(BIN)/headgate crd --reference --check docs/reference
	$(BIN)/python -m docs.commands --check
	$(BIN)/python -m docs.options --check
	$(BIN)/python -m charts.generate --check
	$(BIN)/python -m benchmarks.figures --check
	$(BIN)/python -m docs.pictures --check

lint-locks: setup
	$(BIN)/python -m locks.make --check
	$(BIN)/python -m locks.licences

# Where nobody can be asked that is told, and no failure, but with HEADGATE_AUDIT=required.
lint-holes: setup
	$(BIN)/python -m locks.known $(if $(filter required,$(HEADGATE_AUDIT)),--required)

lock: setup  ## Write the locks of all libraries from pyproject.toml; UPGRADE=1 takes the newest
	$(BIN)/python -m locks.make $(if $(UPGRADE),--upgrade)

audit: setup  ## Ask over the network which holes are known in locked libraries, and what mends them
	$(BIN)/python -m locks.audit

generate: setup  ## Write the generated files (CRD, references, chart)
	$(BIN)/headgate crd --out crds
	$(BIN)/headgate crd --reference --out docs/reference
	$(BIN)/python -m docs.commands
	$(BIN)/python -m docs.options
	$(BIN)/python -m charts.generate
	$(BIN)/python -m benchmarks.figures
	$(BIN)/python -m docs.pictures

tools: programs jars classes images  ## Make what tests run against; minutes at first, then nothing

programs: setup
	PYTHONPATH=tests $(BIN)/python -m support.go_tools

jars: setup
	PYTHONPATH=tests $(BIN)/python -m support.maven

classes: setup
	PYTHONPATH=tests $(BIN)/python -m support.class_data

images: setup
	PYTHONPATH=tests $(BIN)/python -m support.node_images

# What comes before the tests waits for the network, for one linker or for one type checker: side by side it is quicker.
# Four workers, on two cores too: those with real nodes and operators mostly wait.
test: setup  ## Every test but those of test-door and test-spark-versions
	$(MAKE) --jobs=4 lint tools
	$(BIN)/python -m pytest --numprocesses=4 --durations=40 --durations-min=5 --ignore=tests/door

# A JVM for each kind of job, one after the other: side by side with other tests they wait for one another.
test-door: setup jars classes  ## Every kind of job, governed by one property; sessions, examples and real-time mode
	$(BIN)/python -m pytest tests/door -n0

# Without a JVM, without Go, and with few examples of each law: what a change of the cores breaks is seen at once.
test-quick: setup  ## What needs no JVM, no Go and no processes of its own; two minutes
	HEADGATE_TEST_QUICK=1 $(BIN)/python -m pytest -q --numprocesses=2 --hypothesis-profile=quick \
	  -m "not (spark or cluster or node or programs or processes)"

test-spark-versions: setup  ## The shim, and a governed job on a real broker, on every supported version of Spark; about ten minutes
	PYTHONPATH=tests:. $(BIN)/python tests/spark_versions/run.py

test-object-store: setup jars  ## The fence on S3A, and two drivers that race there, on a server of S3 with conditional writes; four minutes
	PYTHONPATH=tests:. $(BIN)/python tests/object_store/run.py

demo: $(RUNS)  ## A backlog of flights, then live: Spark's default and governed, side by side
	$(BIN)/python -m benchmarks.demo

demo-kafka: setup  ## One join of two topics, plain and aligned, side by side
	$(BIN)/python -m benchmarks.kafka.demo

demo-live: setup  ## One count through an outage: Spark's default, its real-time mode, and governed, live in that
	$(BIN)/python -m benchmarks.live.demo

bench-local: setup  ## Ratios on this machine -> benchmarks/results/local.json
	$(BIN)/python -m benchmarks.local

bench-operator: setup tools  ## The operator on a real API server, a real Prometheus, a real node -> benchmarks/results/operator.json
	$(BIN)/python -m benchmarks.operator

bench-kafka: setup  ## Throughput, planning, rates, alignment and faults on a real broker -> benchmarks/results/kafka.json
	$(BIN)/python -m benchmarks.kafka

bench-door: setup jars classes  ## One jar and one property: questions, throughput, leaks, idle queries, kinds of job -> benchmarks/results/door.json
	$(BIN)/python -m benchmarks.door

bench-backlog: setup  ## Backlogs as one batch, beside plain Spark and batch jobs; alignment beside Flink -> benchmarks/results/backlog.json
	$(BIN)/python -m benchmarks.backlog

bench-alternatives: setup jars classes  ## Beside what one would otherwise choose: defaults, caps, Flink -> benchmarks/results/alternatives.json
	$(BIN)/python -m benchmarks.alternatives

chaos: setup jars classes  ## Every field, every stale look, a million inputs, 500 faults, by SEED and of ONLY -> benchmarks/results/chaos.json
	$(BIN)/python -m benchmarks.chaos --seed $(or $(SEED),1) $(if $(ONLY),--only $(ONLY)) \
	  $(if $(FAULTS),--faults $(FAULTS)) $(if $(RECORDS),--records $(RECORDS))

soak: setup tools jars classes  ## Restarts by the thousand in a driver, by fifty of drivers, operators, API servers: what grows -> benchmarks/results/soak.json
	$(BIN)/python -m benchmarks.soak --scale $(or $(SCALE),1)

bench-live: setup jars classes  ## Votes, change streams, real-time mode: latency, backlog, switches, kills -> benchmarks/results/live.json
	$(BIN)/python -m benchmarks.live

bench: bench-local bench-operator bench-kafka bench-door bench-backlog bench-alternatives bench-live  ## Every benchmark

dist: $(RUNS)  ## The jar for any Spark job, the wheel, a Maven repository of them -> dist/
	$(BIN)/python spark_jobs/shim/dist.py

docs: setup  ## The site of the pages -> build/site; a broken link fails it
	$(BIN)/python -m docs.site

clean:  ## Remove what was built, but not the virtual environment
	rm -rf build dist spark_jobs/headgate_spark/jars
