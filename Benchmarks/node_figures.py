"""The figures of a cluster with several nodes: a device at another node, arrivals, and more nodes."""

import asyncio
import contextlib
import statistics
import time

import nats as nats_py

from loads import CONNECTIONS, COUNTED, STREAMS, DeviceLoad, Requests, device_tokens, send_counted
from machine import WORK, exact_cpu_seconds, undisturbed
from nats_trio import Trio
from provider_connection import ProviderConnection
from provider_figures import DAY, TOPIC
from report import median
from servers import Herald

#: The bars: CPU of three NATS servers for a notification to a device at another node, and its time from request to receipt.
SERVERS_US, ELSEWHERE_MS = 150, 3
#: Notifications whose time is measured, and the pause after each.
TIMED, PAUSE = 500, 0.005
#: Devices that arrive cold, and the messages that are stored between those that wait for them: a block in each partition.
ARRIVALS, BALLAST, BYTES, PARTITIONS = 60, 5000, 900, 4
#: Seconds after which a server has dropped a block of its files that nobody read.
COLD = 12
SETTLE = 1


class Cluster:
    """Three NATS servers and Herald nodes, `with` for as long as it lasts. The nodes have the same trust."""

    def __init__(self, folder, identities, count):
        self._folder, self._identities, self._count = folder, identities, count

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.trio = stack.enter_context(Trio(self._folder.with_name(self._folder.name + "-nats")))
            self.nodes = []
            options = ["--cluster", ",".join(self.trio.urls), "--cluster-unverified"]
            for number in range(self._count):
                data, folder = self._identities.data, self._folder.with_name(f"{self._folder.name}-{number + 1}")
                own = ["--node", f"n{number + 1}"]
                if self.nodes:
                    # It takes authorities and keys from the cluster.
                    data = self._folder.with_name(self._folder.name + "-empty")
                    data.mkdir(exist_ok=True)
                    own += ["--cluster-key", str(self.nodes[0].folder / "trust" / "cluster.key")]
                node = Herald(folder, data, options=[*options, *own])
                self.nodes.append(stack.enter_context(node))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def cpu_seconds(self):
        """Of the servers, and of the nodes."""
        return self.trio.cpu_seconds(), sum(exact_cpu_seconds(node.pid) for node in self.nodes)

    def idle(self):
        """The use of both while nothing happens, in CPU seconds for a second."""
        return [used / 3 for used in self.spent(lambda: time.sleep(3))]

    def spent(self, body):
        before = self.cpu_seconds()
        body()
        return [now - then for now, then in zip(self.cpu_seconds(), before)]


class _Case:
    """Devices that are connected to some nodes, a share to each, and requests to others."""

    def __init__(self, stack, settings, name, to, at):
        devices = max(settings.devices, CONNECTIONS * STREAMS)
        self.shares = []
        self.to, self.bearer, self.expiration = to, to[0].provider_token(), int(time.time()) + DAY
        self.tokens = device_tokens(at[0].port("device"), at[0].ca, settings.identities, devices, [TOPIC])[TOPIC]
        self.requests = Requests(WORK / f"{name}-requests", self.tokens, self.bearer, TOPIC, self.expiration)
        share = -(-devices // len(at))
        self.loads = [
            stack.enter_context(DeviceLoad(node.port("device"), node.ca, settings.identities, min(share, devices - place * share),
                                           f"apps/{TOPIC}/#", first=place * share))
            for place, node in enumerate(at)]

    def send(self):
        """A fixed number of notifications, as fast as they are answered; the connections go to the nodes in turn."""
        for load in self.loads:
            load.ask("begin")
        began = time.monotonic()
        send_counted(self.to, [node.port("api") for node in self.to], self.requests)
        self.seconds = time.monotonic() - began
        time.sleep(SETTLE)
        self.shares.append(sum(load.ask("end")["received"] for load in self.loads) / COUNTED)

    @property
    def delivered(self):
        """A note: the others were replaced by newer ones before their device had acknowledged the one before."""
        return f"{statistics.median(self.shares):.1%} delivered, the others replaced"

    def times(self, pids):
        """From request to receipt, one after another."""
        (node,), (load,) = self.to, self.loads
        connection = ProviderConnection(node, self.bearer)
        with undisturbed([*pids, load.pid]):
            load.ask("begin")
            for number in range(TIMED):
                connection.push(self.tokens[number % len(self.tokens)], TOPIC, self.expiration)
                time.sleep(PAUSE)
            time.sleep(SETTLE)
            outcome = load.ask("end")
        if outcome["received"] != TIMED:
            node.fail(f"brought {outcome['received']:.0f} of {TIMED} notifications")
        return outcome


def elsewhere(settings, report):
    """A notification to a device that is connected to another node; one machine without a cluster beside it."""
    ours, servers, single, times = [], [], [], []
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(WORK / "elsewhere", settings.identities, 2))
        alone = stack.enter_context(Herald(WORK / "elsewhere-alone", settings.identities.data))
        first, second = cluster.nodes
        case = _Case(stack, settings, "elsewhere", [first], [second])
        peer = _Case(stack, settings, "elsewhere-alone", [alone], [alone])
        idle = cluster.idle()
        for _ in range(settings.rounds):
            began = time.monotonic()
            spent = cluster.spent(case.send)
            lasted = time.monotonic() - began
            both = [(used - rest * lasted) * 1e6 / COUNTED for used, rest in zip(spent, idle)]
            servers.append(both[0])
            ours.append(both[1])
            before = exact_cpu_seconds(alone.pid)
            peer.send()
            single.append((exact_cpu_seconds(alone.pid) - before) * 1e6 / COUNTED)
            times.append(case.times([*(process.pid for process in cluster.trio.processes), first.pid, second.pid]))
    report.figure("cluster_elsewhere", ours, single, "us CPU of the nodes", "alone", lower_is_better=True,
                  note=f"{case.delivered}; alone {peer.delivered}")
    report.figure("cluster_elsewhere_nats", servers, [SERVERS_US], "us CPU of the servers", "bar", lower_is_better=True)
    report.figure("cluster_elsewhere_p50", [one["p50_ms"] for one in times], [ELSEWHERE_MS], "ms (p50, request to receipt)", "bar",
                  lower_is_better=True, note=f"p99 {median(times, 'p99_ms'):.1f} ms; {TIMED} notifications, one after another")


def more_nodes(settings, report):
    """One, two and three nodes: each holds its share of the devices, and takes its share of the same notifications.

    All are on the server's core, so that the cost counts, not the rate.
    """
    outcomes, notes = {}, {}
    for count in (1, 2, 3):
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(Cluster(WORK / f"nodes-{count}", settings.identities, count))
            case = _Case(stack, settings, f"nodes-{count}", cluster.nodes, cluster.nodes)
            idle, outcomes[count] = cluster.idle(), []
            for _ in range(settings.rounds):
                began = time.monotonic()
                spent = cluster.spent(case.send)
                lasted = time.monotonic() - began
                servers, nodes = ((used - rest * lasted) * 1e6 / COUNTED for used, rest in zip(spent, idle))
                outcomes[count].append({"rate": COUNTED / case.seconds, "servers_us": servers, "nodes_us": nodes, "cpu_us": servers + nodes})
            notes[count] = case.delivered
    for count in (2, 3):
        ours, one = outcomes[count], outcomes[1]
        report.figure(
            f"cluster_nodes_{count}", [o["rate"] for o in ours], [o["rate"] for o in one], "notifications/s", "one node",
            by_cpu=median(one, "cpu_us") / median(ours, "cpu_us"),
            note="; ".join(f"{number} nodes: {median(found, 'nodes_us'):.1f} us CPU of the nodes, {median(found, 'servers_us'):.1f} of the "
                           f"servers, {notes[number]}" for number, found in ((count, ours), (1, one))))


def arrival(settings, report):
    """Devices connect that have a notification waiting: while the servers have their blocks in memory, and when they have not."""
    with Cluster(WORK / "arrival", settings.identities, 1) as cluster:
        (node,) = cluster.nodes
        def registered(devices, first=0):
            return device_tokens(node.port("device"), node.ca, settings.identities, devices, [TOPIC], True, first)[TOPIC]

        # A session that is resumed gets no token again.
        few = registered(ARRIVALS)
        tokens = few + registered(settings.devices - ARRIVALS, ARRIVALS)
        connection, expiration = ProviderConnection(node, node.provider_token()), int(time.time()) + DAY
        warm = []
        for _ in range(settings.rounds):
            for token in tokens:
                connection.push(token, TOPIC, expiration)
            warm.append(_arrive(cluster, settings, node, len(tokens)))
        asyncio.run(_scatter(cluster.trio, few, lambda token: connection.push(token, TOPIC, expiration)))
        time.sleep(COLD)
        cold = _arrive(cluster, settings, node, ARRIVALS)
    report.figure("cluster_arrival", warm, [cold], "us CPU of the servers", "cold", lower_is_better=True,
                  note=f"one notification each; cold: {ARRIVALS} devices, each with a block of 4 MiB of its own")


async def _scatter(trio, tokens, push):
    """A notification for each device, and many others between them: each lies in another block of the servers' files."""
    client = await nats_py.connect(trio.urls)
    stream = client.jetstream(publish_async_max_pending=2 * BALLAST)
    for place, token in enumerate(tokens):
        push(token)
        await asyncio.gather(*[await stream.publish_async(f"hrld.box.{number % PARTITIONS}.ballast.n.{place}.{number}", b"x" * BYTES)
                               for number in range(BALLAST)])
    await client.close()


def _arrive(cluster, settings, node, count):
    """CPU of the servers for one arrival, in microseconds."""
    idle, began = cluster.idle()[0], time.monotonic()

    def connect():
        with DeviceLoad(node.port("device"), node.ca, settings.identities, count, f"apps/{TOPIC}/#", expect=1, keep_session=True):
            time.sleep(SETTLE)

    spent = cluster.spent(connect)[0]
    return (spent - idle * (time.monotonic() - began)) * 1e6 / count
