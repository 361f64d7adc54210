"""How a ring finds the node that holds its device: a subscription for each device, or a table of all claims in each node.

    SCRIPT=rings.py Benchmarks/run [DEVICES]       100,000 unless told otherwise

Three real servers and nodes of `RingBench`, each at another server. Claims are written in both ways; `none` writes them alone, so
that the difference to it is what a way costs. Prints what docs/decisions/rings.md has, and writes it to .build/bench/rings.json.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

import machine
from machine import ON_LOAD_CORES, WORK
from nats_trio import CLIENT, LOOPBACK, Trio
from ring_nodes import RingNode, each

WAYS = ("none", "subscriptions", "table")
#: Devices that connect and disconnect in a measurement, those under way in each node, the rings, and probes of a new connect.
CYCLES, WINDOW, RINGS, PROBES = 9000, 64, 9000, 200
#: Nodes beside the three, which only follow.
FOLLOWERS = (7, 47)
SETTLE = 2


class Costs:
    """CPU time of servers and nodes for each of a number of operations, without what they use while nothing happens."""

    def __init__(self, trio, nodes):
        self._trio, self._nodes = trio, nodes
        before, began = self._read(), time.monotonic()
        time.sleep(5)
        self._idle = [(now - then) / (time.monotonic() - began) for now, then in zip(self._read(), before)]

    def _read(self):
        return [self._trio.cpu_seconds(), *(node.cpu_seconds() for node in self._nodes)]

    def of(self, count, body):
        """Microseconds of all servers, and of each node, for each of `count` operations."""
        before, began = self._read(), time.monotonic()
        body()
        time.sleep(SETTLE)
        lasted = time.monotonic() - began
        spent = [now - then - idle * lasted for now, then, idle in zip(self._read(), before, self._idle)]
        return {"servers_us": spent[0] * 1e6 / count, "nodes_us": [one * 1e6 / count for one in spent[1:]]}


def memory(trio, nodes):
    return {"servers": trio.memory(), "live": trio.live(), "nodes": [node.memory() for node in nodes]}


def measure(way, devices, log):
    """One way from nothing to `devices` connected ones, then what each operation costs."""
    found = {"way": way, "devices": devices}
    with Trio(WORK / way) as trio, contextlib.ExitStack() as stack:
        def node(name, server, its=way):
            made = RingNode(name, trio.urls[server], its, log)
            stack.callback(made.close)
            return made

        nodes = [node(f"n{number + 1}", number) for number in range(3)]
        nodes[0].do("streams")
        if way == "table":
            for each_node in nodes:
                each_node.await_events("caughtUp", 4)
        time.sleep(SETTLE)
        found["before"] = memory(trio, nodes)
        costs = Costs(trio, nodes)
        found["fill"] = costs.of(devices, lambda: expect(each(nodes, "connect", 1, devices, WINDOW), done=devices))
        time.sleep(10)
        found["filled"] = memory(trio, nodes)
        found["cycle"] = [cycle(costs, nodes, devices) for _ in range(3)]
        if way != "none":
            others = [nodes[1], nodes[2], nodes[0]]
            share = devices // 3
            count = min(RINGS // 3, share)
            found["ring"] = [costs.of(3 * count, lambda: ring(others, share, count)) for _ in range(3)]
            found["probe_ms"] = [probe(nodes, devices + CYCLES + number) for number in range(PROBES)]
            found["probe_busy_ms"] = probe_busy(nodes, devices)
            found["reconnect"] = [reconnect(trio, nodes[1], way, devices + 100 * CYCLES, share, log) for _ in range(3)]
        if way == "table":
            found["start"] = [start(trio, node, number) for number in range(3)]
            for more in FOLLOWERS:
                followers = [node(f"f{more}-{number}", number % 3) for number in range(more)]
                for follower in followers:
                    follower.await_events("caughtUp", 4)
                wide = Costs(trio, [*nodes, *followers])
                found[f"cycle_of_{more + 3}"] = [cycle(wide, nodes, devices) for _ in range(2)]
                for follower in followers:
                    follower.close()
    return found


def expect(outcomes, **wanted):
    if outcomes != wanted:
        raise RuntimeError(f"wanted {wanted}, found {outcomes}")


def cycle(costs, nodes, devices):
    """A device connects, and disconnects."""
    def body():
        expect(each(nodes, "connect", devices + 1, CYCLES, WINDOW), done=CYCLES)
        expect(each(nodes, "disconnect", devices + 1, CYCLES, WINDOW), done=CYCLES)

    return costs.of(CYCLES, body)


def ring(others, share, count):
    """Each node rings for devices of the next one."""
    for number, node in enumerate(others):
        node.say("ring", number * share + 1, count, WINDOW)
    for node in others:
        expect({key: value for key, value in node.answer().items() if key != "at"}, answered=count)


def probe(nodes, device):
    """Milliseconds from the answer of a claim until another node can ring the device; below 0: before it."""
    nodes[1].say("await", device)
    stored = nodes[0].do("connect", device, 1, 1)["at"]
    since = nodes[1].answer()["since"]
    nodes[0].do("disconnect", device, 1, 1)
    return (since - stored) / 1e6


def probe_busy(nodes, devices):
    """The same while a third node connects and disconnects devices as fast as it can."""
    first, times = devices + 10 * CYCLES, []
    while len(times) < PROBES:
        nodes[2].say("connect", first, 3000, WINDOW)
        began = len(times)
        while len(times) < began + 20:
            times.append(probe(nodes, devices + 50 * CYCLES + len(times)))
        nodes[2].answer()
        nodes[2].do("disconnect", first, 3000, WINDOW)
    return times


def reconnect(trio, asking, way, first, share, log):
    """A node whose connection breaks: milliseconds until its devices can be rung again, and until its table goes on.

    It reaches its server through a forwarder, and comes back to any server: the first one tells it of the others.
    """
    with contextlib.ExitStack() as stack:
        forward = subprocess.Popen(
            [*ON_LOAD_CORES, "socat", f"TCP-LISTEN:{CLIENT},bind=127.77.0.9,fork,reuseaddr", f"TCP:{LOOPBACK[0]}:{CLIENT}"])
        stack.callback(forward.wait)
        stack.callback(forward.kill)
        time.sleep(1)
        node = RingNode("n9", f"nats://127.77.0.9:{CLIENT}", way, log)
        stack.callback(node.close)
        if way == "table":
            node.await_events("caughtUp", 4)
        expect(each([node], "connect", first, share, WINDOW), done=share)
        outcome, seen = {}, len(node.events)

        def cut():
            moment = time.monotonic()
            for child in pathlib.Path(f"/proc/{forward.pid}/task/{forward.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
            while not any(event == "disconnected" for event, _ in node.events[seen:]):
                time.sleep(0.001)
            outcome["rung_ms"] = (asking.do("reach", first + share - 1)["since"] / 1e9 - moment) * 1e3
            time.sleep(4)
            if resumed := [when for event, when in node.events[seen:] if event == "resumed"]:
                outcome["table_ms"] = (resumed[-1] - moment) * 1e3

        outcome |= Costs(trio, [node]).of(1, cut)
        node.do("disconnect", first, share, WINDOW)
    return outcome


def start(trio, node, number):
    """A node that begins with an empty table: milliseconds until it has all claims, and the CPU time of that."""
    servers = trio.cpu_seconds()
    new = node(f"s{number}", number)
    ready = new.await_events("caughtUp", 4)
    found = {"ready_ms": (ready - new.began) * 1e3, "servers_ms": (trio.cpu_seconds() - servers) * 1e3,
             "node_ms": new.cpu_seconds() * 1e3, "memory": new.memory()}
    new.close()
    return found


def summary(found):
    """The figures in words."""
    def per_device(part, number):
        return (found["filled"][part][number] - found["before"][part][number]) / found["devices"]

    yield f"{found['way']}: {found['devices']:,} devices"
    for part in ("servers", "live", "nodes"):
        yield f"  bytes of a device, {part}: " + ", ".join(f"{per_device(part, number):.0f}" for number in range(3))
    for name in ("fill", *[name for name in found if name.startswith("cycle")], "ring"):
        runs = found.get(name, [])
        runs = runs if isinstance(runs, list) else [runs]
        if runs:
            servers = statistics.median(run["servers_us"] for run in runs)
            nodes = [statistics.median(run["nodes_us"][number] for run in runs) for number in range(len(runs[0]["nodes_us"]))]
            yield f"  {name}: servers {servers:.1f} us, nodes {', '.join(f'{node:.1f}' for node in nodes[:4])} us"
    for name in ("probe_ms", "probe_busy_ms"):
        if times := sorted(found.get(name, [])):
            yield f"  {name}: p50 {times[len(times) // 2]:.2f}, p99 {times[-len(times) // 100 - 1]:.2f}, most {times[-1]:.2f}"
    for name in ("reconnect", "start"):
        if name in found:
            yield f"  {name}: {json.dumps(found[name])}"


def main():
    devices = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    machine.check(["taskset", "socat"], ["herald", "RingBench"], 1000)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    machine.warn_if_busy()
    print(machine.describe())
    outcomes = []
    with (WORK / "rings.log").open("w") as log:
        for way in WAYS:
            outcomes.append(measure(way, devices // 3 * 3, log))
            print("\n".join(summary(outcomes[-1])), flush=True)
            (WORK / "rings.json").write_text(json.dumps(outcomes, indent=1))


if __name__ == "__main__":
    main()
