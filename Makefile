# The commands of the project. `make run` is the first one to try.

CONFIGURATION ?= debug
BUILD = .build/$(CONFIGURATION)
# What is optimized has the Swift runtime in it: it runs where there is no toolchain, and takes a thirtieth less of the CPU.
FLAGS = --configuration $(CONFIGURATION) $(if $(filter release,$(CONFIGURATION)),--static-swift-stdlib)
PYTHON = .build/venv/bin/python
# What `make bench` measures; nothing: all.
FIGURES ?=
# How often the crash test kills the service.
CRASH_CYCLES ?= 100
# Where `make install` puts the binary: below DESTDIR, if something is to be packed.
PREFIX ?= /usr/local
DESTDIR ?=
SOURCES = Package.swift Sources Tests Examples/PushChat/Package.swift Examples/PushChat/Sources $(wildcard Benchmarks)

# What Herald links against; what the tests drive it with; what the benchmarks compare it with.
LIBRARIES = libjemalloc-dev libnghttp2-dev libpq-dev libsqlite3-dev pkg-config
PEERS = binutils chromium chromium-driver curl dbus-daemon iproute2 openssl mosquitto mosquitto-clients nghttp2-client nghttp2-server postgresql strace \
	python3 python3-dbusmock python3-venv
RIVALS = mosquitto nginx-light nghttp2-client nghttp2-server openssl python3 python3-venv util-linux

.PHONY: build install run demo pushchat test unit interop bench lint format libraries peers rivals clean

build: libraries
	swift build $(FLAGS) --product herald

install:
	$(MAKE) build CONFIGURATION=release
	install -D -s -m 755 .build/release/herald $(DESTDIR)$(PREFIX)/bin/herald

run: build
	$(BUILD)/herald serve --demo

# The chat of Examples/PushChat on two devices.
demo: build pushchat
	HERALD_BINARY=$(CURDIR)/$(BUILD)/herald Examples/PushChat/demo

# A package of its own, which takes Herald as anybody else does.
pushchat: libraries
	swift build --package-path Examples/PushChat --scratch-path .build/pushchat

test: unit interop

unit: libraries
	swift build --build-tests
	swift test --skip-build

interop: libraries peers $(PYTHON)
	swift build $(FLAGS) --product herald
	$(MAKE) pushchat
	HERALD_BINARY=$(CURDIR)/$(BUILD)/herald HERALD_CRASH_CYCLES=$(CRASH_CYCLES) $(PYTHON) -m pytest Tests/Interop

bench: libraries rivals
	Benchmarks/run $(FIGURES)

lint: libraries
	swift format lint --strict --parallel --recursive $(SOURCES)
	scripts/check-sizes
	HERALD_BENCHMARKS=1 swift build --build-tests --explicit-target-dependency-import-check error

format:
	swift format --in-place --parallel --recursive $(SOURCES)

libraries:
	@scripts/install $(LIBRARIES)

peers:
	@scripts/install $(PEERS)

rivals:
	@scripts/install $(RIVALS)

$(PYTHON): Tests/Interop/requirements.txt
	python3 -m venv .build/venv
	.build/venv/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

clean:
	rm -rf .build
