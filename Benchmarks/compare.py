"""Compares two builds of Herald: each figure in interleaved pairs, by the server's CPU time for each unit.

    make compare BASE=DIR [FIGURES="gateway store"]

BASE is another checkout of Herald, built as `Benchmarks/run` builds. Each pair measures BASE and this checkout in turn, the
first one alternating. Prints the ratio, this checkout to BASE (below 1: this one needs less), with its 95 % interval.
"""

import contextlib
import math
import pathlib
import shutil
import statistics
import sys
import time

import machine
from device_figures import courier_party
from identities import Identities
from loads import CONNECTIONS, STREAMS, Requests, counted
from machine import WORK
from provider_figures import DAY, TOPIC, registered
from servers import Accepting, Herald
from store_figures import measure_store

PAIRS = machine.number("PAIRS", 20, least=3)
SECONDS = machine.number("SECONDS", 3, least=2)
DEVICES = machine.number("DEVICES", 1000, least=CONNECTIONS * STREAMS)
#: Student's t for a two-sided interval of 95 %, by degrees of freedom; beyond the table the normal distribution's.
T = {2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 14: 2.14, 19: 2.09, 24: 2.06, 29: 2.05}


def gateway(stack, build, name):
    """Every 200 is durable; the devices are away."""
    identities = build.identities(DEVICES * 10)
    first = WORK / f"{name}-first"
    tokens, bearer = registered(identities, DEVICES * 10, first, build.release)
    requests = Requests(WORK / f"{name}-requests", tokens, bearer, TOPIC, int(time.time()) + DAY)
    herald = stack.enter_context(Herald(WORK / name, first, release=build.release))
    return lambda: counted(herald, herald.port("api"), requests)


def accept(stack, build, name):
    """Accepting alone, without store and devices."""
    accepting = stack.enter_context(Accepting(WORK / name, DEVICES * 10, build.release))
    requests = Requests(WORK / f"{name}-requests", accepting.tokens, accepting.bearer, TOPIC, 0)
    return lambda: counted(accepting, accepting.port("api"), requests)


def courier(stack, build, name):
    """QoS 1 notifications to connected devices, store on."""
    party = courier_party(stack, build.identities(DEVICES), WORK / name, DEVICES, release=build.release)
    return lambda: party.measure(SECONDS)


def store(_stack, build, name):
    """Group commit."""

    def measure():
        outcome = measure_store(WORK / name, release=build.release)
        return {"cpu_us": outcome["ours_cpu_us"]}

    return measure


FIGURES = {figure.__name__: figure for figure in (gateway, accept, courier, store)}


class Build:
    """A checkout that is built for release."""

    def __init__(self, root):
        self.release = root / ".build" / "release"
        self._folder = root / ".build" / "compare-identities"

    def identities(self, count):
        return Identities(self._folder, count, self.release)


def interval(ratios):
    """The geometric mean of the ratios, and the 95 % interval of it."""
    logs = [math.log(ratio) for ratio in ratios]
    mean, error = statistics.mean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    freedom = max((known for known in T if known <= len(logs) - 1), default=2) if len(logs) <= 30 else 0
    width = (T[freedom] if freedom else 1.96) * error
    return [math.exp(value) for value in (mean, mean - width, mean + width)]


def compare(name, base, ours):
    with contextlib.ExitStack() as stack:
        figure = FIGURES[name]
        sides = [figure(stack, base, f"{name}-base"), figure(stack, ours, f"{name}-ours")]
        costs = [[], []]
        for pair in range(PAIRS):
            for side in (0, 1) if pair % 2 == 0 else (1, 0):
                costs[side].append(sides[side]()["cpu_us"])
        mean, low, high = interval([mine / its for its, mine in zip(*costs)])
        print(f"{name:8} {statistics.median(costs[0]):8.2f} {statistics.median(costs[1]):8.2f} us   ratio {mean:.3f} "
              f"({low:.3f} to {high:.3f}; {PAIRS} pairs)", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit("which checkout to compare with? make compare BASE=DIR")
    base, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or list(FIGURES)
    if unknown := [name for name in names if name not in FIGURES]:
        sys.exit(f"no figure {', '.join(unknown)}; there are: {', '.join(FIGURES)}")
    builds = Build(base), Build(machine.ROOT)
    for product in ("herald", "CourierBench", "GatewayBench", "StoreBench"):
        if not (builds[0].release / product).exists():
            sys.exit(f"{product} is not built in {builds[0].release}: run Benchmarks/run there once")
    machine.check(["taskset", "h2load"], ["herald", "DeviceLoad", "CourierBench", "GatewayBench", "StoreBench"], DEVICES * 10)
    machine.warn_if_busy()
    print(f"{machine.describe()}; {PAIRS} pairs of {SECONDS} s; CPU time of BASE, of this checkout, and their ratio")
    for name in names:
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        compare(name, *builds)


main()
