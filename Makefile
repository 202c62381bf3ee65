# make quickstart   run a durable three-controller quorum     make test       every test, a slice of the long loops
# make check        the fast inner loop                       make test-long  every test at full length
# make bench        the measurements
# make campaign     a day's fresh seeds of the simulator, as a table
# make guards       the branches that no unit test and no world takes
# make dist         the sdist and the wheel
PYTHON ?= python3
BIN := .venv/bin
UV = $(if $(shell command -v uv),uv,$(BIN)/uv)
# Compiled once here: under PYTHONDONTWRITEBYTECODE each start would do it again.
PIP = $(UV) pip install --quiet --compile-bytecode --python $(BIN)/python

# Tested again without the compiled parts; so is what changes the core in memory.
PURE = $(addprefix tests/,formats wire raft storage replica controller node server embed) \
  tests/test_native.py

# The second pass repeats property tests of the first: it takes few examples, but for `make test-long`.
AGAIN = QUORATE_PURE_PYTHON=1 $(if $(QUORATE_LONG),,QUORATE_QUICK=1)

# The interpreter and pytest keep what they compiled, of the package and of rewritten tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quickstart test test-long compiled interpreted interpreted-tests check lint quick bench campaign
.PHONY: guards lock clean native dist differential

quickstart: .venv/runtime.stamp native
	@$(BIN)/quorate quickstart $(ARGS)

# A part of the tests' time is waiting: on two cores the inner loop takes 69 s with two workers, 53 s
# with three, 55 s with four.
WORKERS ?= 3

# The compiler and the downloads leave a core to what stands beside them.
test:
	@$(MAKE) --no-print-directory -j 2 .venv/dev.stamp .kafka/suite.stamp
	@$(MAKE) --no-print-directory -j 2 native lint
	@$(MAKE) --no-print-directory -j 2 compiled interpreted

compiled:
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --durations=30 $(ARGS)

# Takes the processor while the workers of `compiled` wait: for a third of their time it is idle.
# Its output comes at its end in one piece, so that it does not mix with theirs.
interpreted:
	@$(MAKE) --no-print-directory --output-sync=recurse interpreted-tests

interpreted-tests:
	$(AGAIN) $(BIN)/pytest -n 1 -m "not slow and not interop" $(PURE)
	QUORATE_PURE_PYTHON=1 $(BIN)/pytest -n 1 -m interpreted tests/raft tests/sim

# tests/time_budget.py says what `make test` leaves to other days.
test-long:
	QUORATE_LONG=1 $(MAKE) --no-print-directory test

# A Spark session takes as long as half of the rest: only where the pipeline differs from the commit.
PIPELINE = src/quorate/spark src/quorate/cli tests/spark
QUICK = not slow and not interop$(if $(shell git status --porcelain -- $(PIPELINE)),, and not smoke)

# What takes longest is left out where neither it nor what it stands on differs from the commit:
# the pipeline's tests without a session, and the simulator's whole worlds.
UNDER_IT = $(addprefix src/quorate/,base wire formats metadata)
UNDER_WORLDS = $(addprefix src/quorate/,raft storage replica controller node sim) tests/sim
unchanged = $(if $(shell git status --porcelain -- $(UNDER_IT) $(1)),,--ignore=$(2))
LEFT = $(call unchanged,$(PIPELINE),tests/spark) \
  $(call unchanged,$(UNDER_WORLDS),tests/sim/test_sim_worlds.py)

# Without the slow tests, with fewer examples of the property tests, over the sources where they
# have changed since they were compiled. Style and types are judged meanwhile.
check: .venv/dev.stamp
	@$(BIN)/python tools/build_native.py --codec
	@$(MAKE) --no-print-directory -j 2 quick lint

quick:
	QUORATE_QUICK=1 $(BIN)/pytest -n $(WORKERS) --dist loadgroup -m "$(QUICK)" $(or $(ARGS),$(LEFT))

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev.stamp native .kafka/libs.stamp
	$(BIN)/python -m bench $(ARGS)

# Every one of Kafka's own tests with our controllers, for hours; goes on where it was interrupted.
kafka-suite: .venv/dev.stamp native .kafka/suite.stamp
	PYTHONPATH=tests $(BIN)/python -m kafka_suite run $(ARGS)

# The same seeded requests to a Java controller and to ours; seeds that agreed are not repeated.
differential: .venv/dev.stamp native .kafka/libs.stamp
	PYTHONPATH=tests $(BIN)/python -m differential $(ARGS)

campaign: .venv/dev.stamp native
	$(BIN)/quorate sim campaign --seeds today:5000 --jobs 2 --out build/campaigns/$(shell date -u +%Y%m%d-%H%M%S) $(ARGS)

# Branches of the core that no unit test and no world takes; goes on where it was interrupted.
guards: .venv/dev.stamp
	@$(BIN)/python tools/guards.py $(ARGS)

# The sdist, and the wheel built from it; with the compiled parts where there is a C compiler.
dist: .venv/dev.stamp
	rm -rf dist
	$(BIN)/python -m build --no-isolation $(ARGS)

# In place and only when a source has changed; without a C compiler it says so and goes on.
# The codec in a second; core, replica and simulator too, in a minute, where mypyc is installed.
native: | .venv/runtime.stamp
	@$(BIN)/python tools/build_native.py
	@$(BIN)/python -m compileall -q src

.venv/bin/python:
	$(PYTHON) -m venv .venv
	command -v uv >/dev/null || $(BIN)/python -m pip install --quiet uv

.venv/runtime.stamp: requirements.lock pyproject.toml | .venv/bin/python
	$(PIP) --require-hashes -r requirements.lock
	QUORATE_PURE_PYTHON=1 $(PIP) --no-deps -e .
	touch $@

.venv/dev.stamp: requirements-dev.lock pyproject.toml | .venv/bin/python
	$(PIP) --require-hashes -r requirements-dev.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@ .venv/runtime.stamp

# What runs a controller, a broker and the tools of a release: java -cp '.kafka/libs/*' kafka.Kafka
# and java -cp '.kafka/libs-4.4.0/*' kafka.Kafka, each with a properties file.
KAFKA_JARS = mvn -q -f tools/kafka-pom.xml dependency:copy-dependencies

.kafka/libs.stamp: tools/kafka-pom.xml
	mkdir -p .kafka
	$(KAFKA_JARS) -DoutputDirectory=$(CURDIR)/.kafka/libs
	touch $@

# One after the other: two Mavens at once get into each other's way.
.kafka/libs-4.4.0.stamp: tools/kafka-pom.xml | .kafka/libs.stamp
	$(KAFKA_JARS) -Dkafka.version=4.4.0 -DoutputDirectory=$(CURDIR)/.kafka/libs-4.4.0
	touch $@

# Kafka's own tests; after the others, as Mavens do not run beside each other.
.kafka/suite.stamp: tools/kafka-suite-pom.xml | .kafka/tla.stamp
	mvn -q -f tools/kafka-suite-pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/.kafka/suite-libs
	touch $@

.kafka/tla.stamp: tools/tla-pom.xml | .kafka/libs-4.4.0.stamp
	mkdir -p .kafka
	mvn -q -f tools/tla-pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/.kafka/tla
	touch $@

lock: | .venv/bin/python
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml -o requirements.lock
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml --extra spark --group dev -o requirements-dev.lock

clean:
	rm -rf .venv .kafka build dist src/quorate/_native.json
	find src -name '*.so' -delete
