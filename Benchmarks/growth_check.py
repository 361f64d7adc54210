"""The costs of a cluster's operations in a real run, beside those that the table of growth takes.

    SCRIPT=growth_check.py Benchmarks/run [DEVICES…]       1,000, 5,000 and 20,000 devices unless told otherwise

Three NATS servers, one Herald node and real device connections on one machine. Each cost is that of `costs.json`.
"""

import contextlib
import json
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

import growth
import machine
from identities import Identities
from loads import DeviceLoad, Requests, device_tokens, send_each
from machine import ON_LOAD_CORES, RELEASE, WORK, exact_cpu_seconds, private_memory
from nats_trio import Trio
from provider_figures import DAY, TOPIC
from servers import Herald

SIZES = (1000, 5000, 20_000)
#: Notifications to each connected device.
TIMES = 3
SETTLE = 3
#: Waiting notifications of which the memory is measured.
WAITING = 100_000
#: Seconds after which a server drops blocks of its files that nobody reads: 10, and some.
UNUSED = 15


class Run:
    """One size: what each operation took, by the names of `costs.json`."""

    def __init__(self, devices, identities):
        self.devices, self.costs = devices, {}
        with contextlib.ExitStack() as stack:
            self.trio = stack.enter_context(Trio(WORK / f"growth-nats-{devices}"))
            options = ["--cluster", ",".join(self.trio.urls), "--cluster-unverified"]
            self.herald = stack.enter_context(Herald(WORK / f"growth-{devices}", identities.data, options=options))
            time.sleep(SETTLE)
            self._idle = self._used(lambda: time.sleep(5))
            self._idle = [used / self._lasted for used in self._idle]
            self._play(identities)

    def _play(self, identities):
        before, tokens = self._memory(), []

        def fleet():
            return [self.herald.port("device"), self.herald.ca, identities, self.devices]

        self._costs("first", 1, lambda: tokens.extend(device_tokens(*fleet(), [TOPIC])[TOPIC]))
        # A node that has just started holds what it knows, and no more.
        self.herald.restart()
        known = self._memory()
        self.costs["known_node_bytes"] = self._bytes(before, known)
        bearer = self.herald.provider_token()
        requests = Requests(WORK / f"growth-requests-{self.devices}", tokens, bearer, TOPIC, int(time.time()) + DAY)
        subscribe = f"apps/{TOPIC}/#"

        def send(times):
            for _ in range(times):
                send_each(self.herald, requests, self.herald.port("api"), tokens, "each")

        devices = DeviceLoad(*fleet(), subscribe)
        self._costs("arrival", 1, lambda: devices.connected)
        self.costs["connected_node_bytes"] = self._bytes(known, self._memory())
        self._costs("delivered", TIMES, lambda: send(TIMES))
        self._costs("departure", 1, devices.close)
        self._costs("stored", 1, lambda: send(1))
        devices = DeviceLoad(*fleet(), subscribe, expect=1)
        self._costs("arrival_waiting", 1, lambda: devices.connected)
        devices.close()

    def _costs(self, name, times, body):
        node, servers, written = self._used(body)
        for unit, used, idle in (("node_us", node * 1e6, self._idle[0] * 1e6), ("servers_us", servers * 1e6, self._idle[1] * 1e6),
                                 ("written_bytes", written, self._idle[2])):
            self.costs[f"{name}_{unit}"] = (used - idle * self._lasted) / (self.devices * times)

    def _used(self, body):
        """CPU seconds of the node and of all servers, and the bytes that each server writes to its disk."""
        before, began = self._resources(), time.monotonic()
        body()
        time.sleep(SETTLE)
        self._lasted = time.monotonic() - began
        return [now - then for now, then in zip(self._resources(), before)]

    def _resources(self):
        written = [int(re.search(r"write_bytes: (\d+)", pathlib.Path(f"/proc/{process.pid}/io").read_text())[1])
                   for process in self.trio.processes]
        return [exact_cpu_seconds(self.herald.pid), self.trio.cpu_seconds(), sum(written) / 3]

    def _memory(self):
        time.sleep(UNUSED)
        return private_memory(self.herald.pid)

    def _bytes(self, before, after):
        """Memory of the node for each device."""
        return (after - before) / self.devices


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
    # Root may raise the limit of open files; others need a high one.
    with contextlib.suppress(ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(hard, max(sizes) + 1000),) * 2)
    machine.check(["taskset", "h2load"], ["herald", "ClusterBench", "DeviceLoad"], max(sizes))
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    machine.warn_if_busy()
    print(machine.describe())
    identities = Identities(machine.ROOT / ".build" / "bench-identities", max(sizes))
    stored = waiting()
    print(json.dumps(stored), flush=True)
    runs = []
    for size in sizes:
        runs.append(Run(size, identities))
        (WORK / "growth.json").write_text(json.dumps({run.devices: run.costs for run in runs}, indent=1))
        print(f"{size:,} devices measured", flush=True)
    print(f"{'':28}{'taken for':>12}" + "".join(f"{run.devices:>12,}" for run in runs))
    for name in runs[0].costs:
        known = growth.COSTS["measured"].get(name)
        print(f"{name:28}{known['value'] if known else float('nan'):12,.1f}" + "".join(f"{run.costs[name]:12,.1f}" for run in runs))


if __name__ == "__main__":
    main()
