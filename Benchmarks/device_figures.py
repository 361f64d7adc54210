"""The figures of the device listener."""

import contextlib
import os
import shutil
import time

from loads import (CONNECTIONS, STREAMS, DeviceLoad, H2load, Requests, Window, device_tokens, handshakes as shake_hands,
                   send_each)
from machine import RELEASE, WORK, private_memory, undisturbed
from provider_figures import DAY, TOPIC, UNIT
from report import median, times
from servers import Courier, Herald, Limit, Mosquitto

APPS = [f"{TOPIC}.app{number}" for number in range(5)]
# Notifications per second at which latency is measured.
MODERATE = 4000
SETTLE = 0.5


class _Party:
    """A server with its devices, and a way to feed them."""

    def __init__(self, server, load, feed, rest):
        self.server, self.load, self._feed, self._rest = server, load, feed, rest

    def measure(self, seconds, rate=0):
        """As fast as the window allows; at a rate, where latency counts, others on this machine do not disturb."""
        with undisturbed([self.server.pid, self.load.pid]) if rate else contextlib.nullcontext():
            self._feed(rate)
            time.sleep(1)
            outcome = self.load.measure(self.server, seconds)
            self._rest()
            time.sleep(SETTLE)
        return outcome


def courier_party(stack, identities, folder, devices, alone=False, release=RELEASE, loops=1):
    """CourierBench with its devices, fed from inside."""
    server = stack.enter_context(Courier(folder, identities, alone, release, loops))
    load = stack.enter_context(DeviceLoad(server.port("device"), server.ca, identities, devices, f"apps/{TOPIC}/#"))
    return _Party(server, load, lambda rate: server.feed(devices, rate), server.rest)


def _mosquitto(stack, settings, folder, devices):
    server = stack.enter_context(Mosquitto(folder, settings.identities))
    load = stack.enter_context(
        DeviceLoad(server.port, server.ca, settings.identities, devices, "d/{n}", publish="d/{n}", publishers=4))
    return _Party(server, load, lambda rate: load.ask(f"publish {rate}"), lambda: load.ask("rest"))


class _Provider:
    """Herald with connected devices, fed through its provider API."""

    def __init__(self, stack, settings, folder, devices):
        self.server = stack.enter_context(Herald(folder, settings.identities.data))
        subscribe, listener = f"apps/{TOPIC}/#", self.server.port("device")
        tokens = device_tokens(listener, self.server.ca, settings.identities, devices, [TOPIC])[TOPIC]
        self._requests = Requests(folder.with_name("courier-requests"), tokens, self.server.provider_token(), TOPIC,
                                  int(time.time()) + DAY)
        self.load = stack.enter_context(DeviceLoad(listener, self.server.ca, settings.identities, devices, subscribe))

    def measure(self, seconds):
        running = H2load(self.server, self.server.port("api"), self._requests, seconds + 1)
        outcome = self.load.measure(self.server, seconds, running.window.pids)
        running.end()
        time.sleep(SETTLE)
        return outcome


def courier(settings, report):
    """QoS 1 notifications to connected devices: through the post office inside the server, through the provider API, and
    without journal and store; mosquitto's by QoS 1 publish. Then from send to receipt at a moderate rate."""
    devices = max(settings.devices, CONNECTIONS * STREAMS)
    ours, alone, provider, peer = [], [], [], []
    our_times, peer_times = [], []
    with contextlib.ExitStack() as stack:
        inside = courier_party(stack, settings.identities, WORK / "courier", devices)
        bare = courier_party(stack, settings.identities, WORK / "courier-alone", devices, alone=True)
        entering = _Provider(stack, settings, WORK / "courier-api", devices)
        mosquitto = _mosquitto(stack, settings, WORK / "mosquitto", devices)
        for _ in range(settings.rounds):
            ours.append(inside.measure(settings.seconds))
            peer.append(mosquitto.measure(settings.seconds))
            provider.append(entering.measure(settings.seconds))
            alone.append(bare.measure(settings.seconds))
            our_times.append(inside.measure(settings.seconds, MODERATE))
            peer_times.append(mosquitto.measure(settings.seconds, MODERATE))
    report.rates("courier", ours, peer, UNIT, "mosquitto", f"{devices:,} devices, through the post office, store on")
    report.say(f"at this rate {times(ours, peer, 'mosquitto')}")
    report.rates("courier_api", provider, peer, UNIT, "mosquitto", "through the provider API; its load is h2load too")
    report.rates("courier_alone", alone, peer, UNIT, "mosquitto", f"no journal, no store; at this rate {times(alone)}")
    report.figure("courier_p99", [o["p99_ms"] for o in our_times], [o["p99_ms"] for o in peer_times],
                  f"ms (p99 at {MODERATE:,}/s)", "mosquitto", lower_is_better=True,
                  note=f"p50 {median(our_times, 'p50_ms'):.2f} and {median(peer_times, 'p50_ms'):.2f} ms; received "
                  f"{median(our_times, 'rate'):,.0f} and {median(peer_times, 'rate'):,.0f}/s")


def courier_loops(settings, report):
    """The same with two event loops on the one core, against one; and from send to receipt at a moderate rate."""
    devices = max(settings.devices, CONNECTIONS * STREAMS)
    ours, peer, our_times, peer_times = [], [], [], []
    with contextlib.ExitStack() as stack:
        two = courier_party(stack, settings.identities, WORK / "courier-two", devices, loops=2)
        one = courier_party(stack, settings.identities, WORK / "courier-one", devices)
        for _ in range(settings.rounds):
            ours.append(two.measure(settings.seconds))
            peer.append(one.measure(settings.seconds))
            our_times.append(two.measure(settings.seconds, MODERATE))
            peer_times.append(one.measure(settings.seconds, MODERATE))
    report.rates("courier_loops", ours, peer, UNIT, "one loop", "two event loops on the one core")
    report.say(f"at {MODERATE:,}/s {times(our_times, peer_times, 'one loop')}")


def courier_many(settings, report):
    """The same with many more devices."""
    ours, peer = [], []
    with contextlib.ExitStack() as stack:
        inside = courier_party(stack, settings.identities, WORK / "courier-many", settings.many)
        mosquitto = _mosquitto(stack, settings, WORK / "mosquitto-many", settings.many)
        for _ in range(settings.rounds):
            ours.append(inside.measure(settings.seconds))
            peer.append(mosquitto.measure(settings.seconds))
    report.rates("courier_9000", ours, peer, UNIT, "mosquitto", f"{settings.many:,} devices")
    report.say(f"at this rate {times(ours, peer, 'mosquitto')}")


def handshakes(settings, report):
    """TLS 1.3 handshakes with client certificates: how many one core of the server could do."""
    outcomes = {kind: ([], [], []) for kind in ("full", "resumed")}
    with Herald(WORK / "handshakes", settings.identities.data) as herald, \
            Mosquitto(WORK / "mosquitto-handshakes", settings.identities) as mosquitto, \
            Limit(WORK / "limit-handshakes", settings.identities) as limit:
        for _ in range(settings.rounds):
            for kind, found in outcomes.items():
                for (server, port), results in zip(
                        ((herald, herald.port("device")), (mosquitto, mosquitto.port), (limit, limit.port)), found):
                    results.append(shake_hands(server, port, server.ca, settings.identities, 3, kind == "resumed"))
    for kind, (ours, peer, least) in outcomes.items():
        # The load may be busier than the server: what counts is the server's CPU.
        report.figure(f"handshake_{kind}", [1e6 / o["cpu_us"] for o in ours], [1e6 / o["cpu_us"] for o in peer],
                      "handshakes/CPU second", "mosquitto",
                      note="; ".join(f"{name} {median(found, 'rate'):,.0f}/s, {median(found, 'cpu_us'):,.0f} us CPU each, "
                                     f"server {median(found, 'busy'):.0%} and load {median(found, 'load_busy'):.0%} of a core"
                                     for name, found in (("ours", ours), ("mosquitto", peer))))
        report.say(f"from connecting to the end of the connection: {times(ours, peer, 'mosquitto')}")
        report.figure(f"handshake_{kind}_limit", [o["cpu_us"] for o in ours], [o["cpu_us"] for o in least], "us CPU each", "limit",
                      lower_is_better=True)


def reconnect(settings, report):
    """Devices lose the server, which stops and starts again; all come back with a full handshake and get what waits: one
    notification for each of their apps; with mosquitto, which keeps its sessions in a file, as many."""
    devices, identities = settings.reconnect, settings.identities
    ours, peer, least = [], [], []
    with Herald(WORK / "reconnect", identities.data) as herald, \
            Mosquitto(WORK / "mosquitto-reconnect", identities, persistence=True) as mosquitto, \
            Limit(WORK / "limit-reconnect", identities, messages=len(APPS)) as limit:
        tokens = device_tokens(herald.port("device"), herald.ca, identities, devices, APPS, keep_session=True)
        bearer, expiration = herald.provider_token(), int(time.time()) + DAY
        requests = [Requests(WORK / f"reconnect-{app}", tokens[app], bearer, app, expiration) for app in APPS]
        topics = ",".join(f"d/{{n}}/{app}" for app in APPS)
        with DeviceLoad(mosquitto.port, mosquitto.ca, identities, devices, topics, keep_session=True):
            pass
        for _ in range(settings.rounds):
            for sending in requests:
                send_each(herald, sending, herald.port("api"), sending.tokens, f"{herald.port('api')}-each")
            herald.restart()
            apps = ",".join(f"apps/{app}/#" for app in APPS)
            ours.append(_drain(herald, herald.port("device"), settings, apps))
            with DeviceLoad(mosquitto.port, mosquitto.ca, identities, 0, "", publish=topics, publishers=1,
                            topics=devices) as publisher:
                publisher.ask("each")
            mosquitto.restart()
            peer.append(_drain(mosquitto, mosquitto.port, settings, topics))
            limit.restart()
            least.append(_drain(limit, limit.port, settings, topics))
    report.rates("reconnect", ours, peer, "devices/s", "mosquitto",
                 f"{devices:,} devices, {len(APPS)} notifications each, full handshakes, 48 at a time")
    report.say(f"from connecting to the last of what waits: {times(ours, peer, 'mosquitto')}")
    report.figure("reconnect_limit", [o["cpu_us"] for o in ours], [o["cpu_us"] for o in least], "us CPU each", "limit",
                  lower_is_better=True)


def _drain(server, port, settings, subscribe):
    window = Window(server.pid)
    with DeviceLoad(port, server.ca, settings.identities, settings.reconnect, subscribe, expect=len(APPS),
                    keep_session=True) as load:
        window.end()
        seconds, rate = load.connected["seconds"], settings.reconnect / load.connected["seconds"]
        return {**load.connected, "rate": rate, "cpu_us": window.server / settings.reconnect * 1e6,
                "busy": window.server / seconds, "load_busy": load.connected["load_cpu"] / seconds}


def idle_memory(settings, report):
    """Private memory per idle connection: fresh, and after half of them went and as many others came."""
    ours, peer, least = [], [], []
    for place in range(settings.idle_rounds):
        with Herald(WORK / f"idle-{place}", settings.identities.data) as herald:
            ours.append(_memory(herald, herald.port("device"), settings, f"apps/{TOPIC}/#"))
        shutil.rmtree(herald.folder)
        with Mosquitto(WORK / f"mosquitto-idle-{place}", settings.identities) as mosquitto:
            peer.append(_memory(mosquitto, mosquitto.port, settings, "d/{n}"))
        with Limit(WORK / f"limit-idle-{place}", settings.identities) as limit:
            least.append(_memory(limit, limit.port, settings, "d/{n}"))
    for place, name in enumerate(("idle_memory", "idle_memory_churn")):
        note = f"{settings.idle:,} connections, one registration each"
        if place == 1:
            note += f", of which {settings.idle // 2:,} went and as many others came"
        report.figure(name, [o[place] for o in ours], [o[place] for o in peer], "KiB per connection", "mosquitto",
                      lower_is_better=True, note=note)
        report.figure(f"{name}_limit", [o[place] for o in ours], [o[place] for o in least], "KiB per connection", "limit",
                      lower_is_better=True)


def _memory(server, port, settings, subscribe):
    half = settings.idle // 2

    def fleet(first):
        return DeviceLoad(port, server.ca, settings.identities, half, subscribe, first=first)

    def per_connection():
        time.sleep(3)
        return (private_memory(server.pid) - before) / (2 * half) / 1024

    before = private_memory(server.pid)
    # Both at once, so that the leaving connections leave gaps between the others.
    going, staying = fleet(0), fleet(half)
    with going, staying:
        fresh = per_connection()
        going.close()
        _await_files(server, half + half // 2)
        with fleet(2 * half):
            return fresh, per_connection()


def _await_files(server, fewer_than):
    """Waits until a server has noticed that its devices went."""
    end = time.monotonic() + 60
    while len(os.listdir(f"/proc/{server.pid}/fd")) >= fewer_than:
        if time.monotonic() > end:
            server.fail("keeps connections that were closed")
        time.sleep(0.1)
