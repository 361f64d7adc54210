"""The figures of the provider API."""

import contextlib
import shutil
import statistics
import time

import loads
from loads import DeviceLoad, Requests, counted, device_tokens, h2load, latencies
from machine import RELEASE, WORK
from report import times
from servers import TEAM, Accepting, Herald, Nghttpd, Nginx

UNIT = "notifications/s"
TOPIC = "com.example.bench"
DAY = 86_400
# Milliseconds from request to 200 that 99 of 100 should stay below at a moderate rate.
MODERATE_P99 = 1.5
# As GatewayBench names it.
TEAM_OF_GATEWAY_BENCH = "TEAM000001"


def registered(identities, devices, folder, release=RELEASE):
    """A data folder in which devices are registered, their tokens, and a provider's token."""
    with Herald(folder, identities.data, release=release) as herald:
        tokens = device_tokens(herald.port("device"), herald.ca, identities, devices, [TOPIC])[TOPIC]
        return tokens, herald.provider_token()


def _replaced(herald, before):
    """The share of stored notifications that were replaced within their own commit, and never written as rows."""
    now = herald.counters()
    stored, unwritten = ("herald_notifications_stored_total", "herald_notifications_replaced_unwritten_total")
    return (now.get(unwritten, 0) - before.get(unwritten, 0)) / max(1, now.get(stored, 0) - before.get(stored, 0))


def gateway(settings, report):
    """Devices away, every 200 durable; the peer answers 200 to the same requests. Also with a slower disk."""
    devices = settings.gateway_devices
    first = WORK / "gateway"
    tokens, bearer = registered(settings.identities, devices, first)
    requests = Requests(WORK / "gateway-requests", tokens, bearer, TOPIC, int(time.time()) + DAY)
    with contextlib.ExitStack() as stack:
        heralds = {delay: stack.enter_context(Herald(WORK / f"gateway-{delay}", first, delay)) for delay in (0, 1, 5)}
        nginx = stack.enter_context(Nginx(WORK / "nginx"))
        shutil.rmtree(first)
        ours, peer, replaced = {delay: [] for delay in heralds}, [], {delay: [] for delay in heralds}
        for _ in range(settings.rounds):
            for delay, herald in heralds.items():
                before = herald.counters()
                ours[delay].append(_measured(herald, herald.port("api"), requests, settings))
                replaced[delay].append(_replaced(herald, before))
                if delay == 0:
                    peer.append(_measured(nginx, nginx.port, requests, settings))
        for delay, herald in heralds.items():
            name = f"gateway_sync_{delay}ms" if delay else "gateway"
            report.rates(name, ours[delay], peer, UNIT, "nginx",
                         f"{devices:,} devices, {max(replaced[delay]):.1%} replaced within a commit")
            found = _say_times(report, requests, herald, nginx)
            if delay == 0:
                report.figure("gateway_p99", [o["p99_ms"] for o in found], [MODERATE_P99], "ms (p99 at 2,000/s)",
                              f"{MODERATE_P99} ms", lower_is_better=True)


def _measured(server, port, requests, settings):
    """The rate of some seconds, and the CPU time of a number of requests."""
    return {**h2load(server, port, requests, settings.seconds), **counted(server, port, requests)}


def _say_times(report, requests, herald, nginx):
    """From request to answer at a moderate rate, twice in turn; returns the outcomes of Herald."""
    ours, peer = [], []
    for _ in range(2):
        ours.append(latencies(herald, herald.port("api"), requests))
        peer.append(latencies(nginx, nginx.port, requests))
    report.say(f"at 2,000/s, from request to 200: {times(ours, peer, 'nginx')}")
    return ours


def gateway_loops(settings, report):
    """The same with two event loops on the one core, against one."""
    devices = settings.gateway_devices
    first = WORK / "loops"
    tokens, bearer = registered(settings.identities, devices, first)
    requests = Requests(WORK / "loops-requests", tokens, bearer, TOPIC, int(time.time()) + DAY)
    with Herald(WORK / "loops-2", first, loops=2) as two, Herald(WORK / "loops-1", first) as one:
        shutil.rmtree(first)
        ours, peer = [], []
        for _ in range(settings.rounds):
            ours.append(_measured(two, two.port("api"), requests, settings))
            peer.append(_measured(one, one.port("api"), requests, settings))
        report.rates("gateway_loops", ours, peer, UNIT, "one loop", "two event loops on the one core")
        ours, peer = ([latencies(server, server.port("api"), requests)] for server in (two, one))
        report.say(f"at 2,000/s, from request to 200: {times(ours, peer, 'one loop')}")


def gateway_connected(settings, report):
    """The same with the devices connected and acknowledging."""
    devices = max(settings.devices, loads.CONNECTIONS * loads.STREAMS)
    first = WORK / "connected"
    tokens, bearer = registered(settings.identities, devices, first)
    requests = Requests(WORK / "connected-requests", tokens, bearer, TOPIC, int(time.time()) + DAY)
    ours, peer = [], []
    with Herald(WORK / "connected-0", first) as herald, Nginx(WORK / "nginx-connected") as nginx, \
            DeviceLoad(herald.port("device"), herald.ca, settings.identities, devices, f"apps/{TOPIC}/#"):
        before = herald.counters()
        for _ in range(settings.rounds):
            ours.append(h2load(herald, herald.port("api"), requests, settings.seconds))
            peer.append(h2load(nginx, nginx.port, requests, settings.seconds))
        now = herald.counters()
        stored = now.get("herald_notifications_stored_total", 0) - before.get("herald_notifications_stored_total", 0)
        accepted = now["herald_notifications_received_total"] - before.get("herald_notifications_received_total", 0)
        report.rates("gateway_connected", ours, peer, UNIT, "nginx",
                     f"{devices:,} devices connected (their own load not counted), {stored / accepted:.1%} stored because "
                     "the acknowledgement took too long")
        _say_times(report, requests, herald, nginx)


def accept(settings, report):
    """Accepting alone: no store and no devices, every notification is answered at once."""
    ours, peer, other = [], [], []
    with Accepting(WORK / "accept", settings.gateway_devices) as accepting:
        requests = Requests(WORK / "accept-requests", accepting.tokens, accepting.bearer, TOPIC, 0)
        with Nghttpd(WORK / "nghttpd", accepting.tokens) as nghttpd, Nginx(WORK / "nginx-accept") as nginx:
            for _ in range(settings.rounds):
                ours.append(h2load(accepting, accepting.port("api"), requests, settings.seconds))
                peer.append(h2load(nghttpd, nghttpd.port, requests, settings.seconds))
                other.append(h2load(nginx, nginx.port, requests, settings.seconds))
    report.rates("accept", ours, peer, "requests/s", "nghttpd")
    report.rates("accept_nginx", ours, other, "requests/s", "nginx")


def client(settings, report):
    """The client library beside h2load: one process on one core each, the same service, the same requests."""
    ours, peer = [], []
    with Accepting(WORK / "client", settings.gateway_devices) as accepting:
        requests = Requests(WORK / "client-requests", accepting.tokens, accepting.bearer, TOPIC, 0)
        (key,) = accepting.folder.glob("AuthKey_*.p8")
        for _ in range(settings.rounds):
            ours.append(loads.client(accepting, requests, key, TEAM_OF_GATEWAY_BENCH, settings.seconds))
            peer.append(loads.h2load_alone(accepting, requests, settings.seconds))
    report.rates("client", ours, peer, "notifications/s", "h2load", "here the CPU is the sender's, and the load is the server")
    _say_latency(report, "from send to answer, 1,000 in flight", ours)


def _say_latency(report, what, outcomes):
    p50, p99 = (statistics.median(outcome[key] for outcome in outcomes) for key in ("p50_ms", "p99_ms"))
    report.say(f"{what}: p50 {p50:.1f}, p99 {p99:.1f} ms")


def relay(settings, report):
    """A queue drained by the relay, beside the client library on the same service: one process on one core each."""
    first = WORK / "relay"
    tokens, bearer = registered(settings.identities, settings.gateway_devices, first)
    (key,) = first.with_name(first.name + "-keys").glob("AuthKey_*.p8")
    requests = Requests(WORK / "relay-requests", tokens, bearer, TOPIC, int(time.time()) + DAY)
    ours, peer = [], []
    with Herald(WORK / "relay-service", first) as herald:
        for _ in range(settings.rounds):
            ours.append(loads.relay(herald, requests, key, TEAM, settings.relay_rows))
            peer.append(loads.client(herald, requests, key, TEAM, settings.seconds, DAY))
    report.rates("relay", ours, peer, UNIT, "client", f"{settings.relay_rows:,} rows of a SQLite queue, devices away; here "
                 "the CPU is the sender's, and the load is the service")
    _say_latency(report, "one row at a time, from its commit until it reads `sent`", ours)
