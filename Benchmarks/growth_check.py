"""The costs of a cluster's operations in real runs, beside those that the table of growth takes.

    SCRIPT=growth_check.py Benchmarks/run [DEVICES…]       1,000, 5,000 and 20,000 devices unless told otherwise

Three NATS servers, Herald and real device connections on one machine. Each cost is that of `costs.json`. One node has all devices, if
it may open as many files; otherwise several have equal shares, and what that costs more is computed as in the table of growth.
"""

import json
import math
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

import growth
import machine
from growth import cost
from identities import Identities
from loads import DeviceLoad, Requests, device_tokens, send_each
from machine import ON_LOAD_CORES, RELEASE, WORK, exact_cpu_seconds, private_memory
from nats_trio import Trio
from node_figures import Cluster
from provider_figures import DAY, TOPIC

SIZES = (1000, 5000, 20_000)
#: Notifications to each connected device.
TIMES = 3
SETTLE = 3
#: Waiting notifications of which the memory is measured.
WAITING = 100_000
#: Seconds after which a server drops blocks of its files that nobody reads: 10, and some.
UNUSED = 15
#: Files that a process opens besides its connections.
OTHER_FILES = 1000


def nodes_for(devices):
    """The fewest nodes whose processes may open a file for each of so many connections."""
    return math.ceil(devices / (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - OTHER_FILES))


class Run:
    """One size: what each operation took, by the names of `costs.json`."""

    def __init__(self, devices, identities):
        self.devices, self.costs = devices, {}
        with Cluster(WORK / f"growth-{devices}", identities, nodes_for(devices)) as cluster:
            self.trio, self.nodes = cluster.trio, cluster.nodes
            time.sleep(SETTLE)
            self._idle = self._used(lambda: time.sleep(5))
            self._idle = [used / self._lasted for used in self._idle]
            self._play(identities)

    def _play(self, identities):
        before, tokens, share = self._memory(), [], self.devices // len(self.nodes)

        def fleets(make, **options):
            """Something for each node, with its share of the devices."""
            return [make(node.port("device"), node.ca, identities, share, first=place * share, **options)
                    for place, node in enumerate(self.nodes)]

        def register():
            for found in fleets(device_tokens, topics=[TOPIC]):
                tokens.extend(found[TOPIC])

        def connect(expect):
            loads = fleets(DeviceLoad, subscribe=f"apps/{TOPIC}/#", expect=expect)
            for load in loads:
                _ = load.connected
            return loads

        def close(loads):
            for load in loads:
                load.close()

        self._costs("first", 1, register)
        # A node that has just started holds what it knows, and no more.
        for node in self.nodes:
            node.restart()
        known = self._memory()
        self.costs["known_node_bytes"] = (known - before) / self.devices / len(self.nodes)
        entry = self.nodes[0]
        requests = Requests(WORK / f"growth-requests-{self.devices}", tokens, entry.provider_token(), TOPIC, int(time.time()) + DAY)

        def send(times):
            for _ in range(times):
                send_each(entry, requests, entry.port("api"), tokens, "each")

        loads = []
        self._costs("arrival", 1, lambda: loads.extend(connect(0)))
        self.costs["connected_node_bytes"] = (self._memory() - known) / self.devices
        self._costs("delivered", TIMES, lambda: send(TIMES))
        self._costs("departure", 1, lambda: close(loads))
        self._costs("stored", 1, lambda: send(1))
        self._costs("arrival_waiting", 1, lambda: loads.extend(connect(1)))
        close(loads[len(self.nodes):])

    def computed(self, name):
        """The cost of it in the table of growth, with so many nodes; None for one that the table does not need."""
        if name not in growth.COSTS["measured"]:
            return None
        operation, unit = name.split("_", 1)
        further, rings = len(self.nodes) - 1, (len(self.nodes) - 1) / len(self.nodes)
        # A connection and its end are half of the followed records each.
        followed = growth.use("followed_by_arrival") / 2 * further
        more = {
            "delivered_node_us": rings * cost("ring_nodes_us"), "delivered_servers_us": rings * cost("ring_servers_us"),
            "connected_node_bytes": further * cost("table_node_bytes"),
        }
        if operation in ("arrival", "departure") and unit in ("node_us", "servers_us"):
            more[name] = followed * cost(f"followed_{unit}")
        return cost(name) + more.get(name, 0)

    def _costs(self, name, times, body):
        node, servers, written = self._used(body)
        for unit, used, idle in (("node_us", node * 1e6, self._idle[0] * 1e6), ("servers_us", servers * 1e6, self._idle[1] * 1e6),
                                 ("written_bytes", written, self._idle[2])):
            self.costs[f"{name}_{unit}"] = (used - idle * self._lasted) / (self.devices * times)

    def _used(self, body):
        """CPU seconds of all nodes and of all servers, and the bytes that each server writes to its disk."""
        before, began = self._resources(), time.monotonic()
        body()
        time.sleep(SETTLE)
        self._lasted = time.monotonic() - began
        return [now - then for now, then in zip(self._resources(), before)]

    def _resources(self):
        written = [int(re.search(r"write_bytes: (\d+)", pathlib.Path(f"/proc/{process.pid}/io").read_text())[1])
                   for process in self.trio.processes]
        return [sum(exact_cpu_seconds(node.pid) for node in self.nodes), self.trio.cpu_seconds(), sum(written) / 3]

    def _memory(self):
        """Of all nodes, in bytes."""
        time.sleep(UNUSED)
        return sum(private_memory(node.pid) for node in self.nodes)


def waiting():
    """The memory of a server, and its disk, for a waiting notification: of so many that what is constant does not count."""
    with Trio(WORK / "growth-waiting") as trio:
        found = []
        for first, count in ((1, 1000), (1001, WAITING)):
            command = [RELEASE / "ClusterBench", "--mode", "store", "--count", count, "--first", first]
            command += [word for url in trio.urls for word in ("--server", url)]
            subprocess.run([*ON_LOAD_CORES, *map(str, command)], check=True, capture_output=True, timeout=600)
            time.sleep(UNUSED)
            found.append((sum(trio.memory()) / 3, disk(trio)))
    return {f"waiting_{name}_bytes": (after - before) / WAITING for name, before, after in zip(("server", "disk"), *found)}


def disk(trio):
    """Bytes of the first server's messages."""
    return sum(file.stat().st_size for file in (trio.folder / "stores" / trio.addresses[0]).rglob("*.blk"))


def main():
    sizes = [int(text) for text in sys.argv[1:]] or SIZES
    machine.check(["taskset", "h2load"], ["herald", "ClusterBench", "DeviceLoad"],
                  max(-(-size // nodes_for(size)) for size in sizes))
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    machine.warn_if_busy()
    print(machine.describe())
    identities = Identities(machine.ROOT / ".build" / "bench-identities", max(sizes))
    stored = waiting()
    for name, value in stored.items():
        print(f"{name:28}{cost(name):12,.1f}{value:12,.1f}", flush=True)
    runs = []
    for size in sizes:
        runs.append(Run(size, identities))
        (WORK / "growth.json").write_text(json.dumps({run.devices: run.costs for run in runs}, indent=1))
        print(f"{size:,} devices measured at {len(runs[-1].nodes)} nodes", flush=True)
    print(f"{'measured, and the table says':28}" + "".join(f"{run.devices:>24,}" for run in runs))
    for name in runs[0].costs:
        print(f"{name:28}" + "".join(f"{compared(run.costs[name], run.computed(name)):>24}" for run in runs))


def compared(measured, computed):
    """Both numbers, and how much the first is above the second."""
    return f"{measured:,.0f}" if computed is None else f"{measured:,.0f} {computed:,.0f} {measured / computed - 1:+.0%}"


if __name__ == "__main__":
    main()
