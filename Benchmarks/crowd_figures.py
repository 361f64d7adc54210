"""A crowd: as many connected devices as somebody wants on one machine, idle for minutes, and what all of them at once take.

One service for each part of the crowd that the limit of open files allows, side by side. Nothing is compared: the figures are
those of `docs/operations/sizing.md`.
"""

import collections
import contextlib
import ipaddress
import math
import pathlib
import re
import resource
import sqlite3
import threading
import time
import urllib.request

from cryptography import x509

from broadcast_figures import Provider
from loads import DeviceLoad, Requests, send_each
from machine import WORK, cpu_seconds, private_memory
from provider_connection import ProviderConnection, payload
from provider_figures import DAY, TOPIC
from servers import Herald

# Devices of one load, which connect from an address of their own: it has 28,000 ports, and those of before a restart may still
# wait when they come back.
FLEET = 12_000
FIRST_ADDRESS = ipaddress.ip_address("127.0.0.1")
# Files of a process that are not connections.
RESERVE = 200
# Bytes of the inode of a socket (832) and of its directory entry (192).
INODE = 1024
PING = 300
REVOKED = 1000
# Seconds for which the services have no devices.
EMPTY = 20
# Bytes of this machine's memory for a device: both ends of its connection.
DEVICE = 90 << 10


def _memory(name):
    return int(re.search(rf"^{name}:\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text(), re.M)[1]) << 10


def _kernel():
    """The kernel's memory for connections: the inodes of sockets and their names count as reclaimable, and are not."""
    sockets = int(re.search(r"^sockets: used (\d+)", pathlib.Path("/proc/net/sockstat").read_text(), re.M)[1])
    return _memory("SUnreclaim") + sockets * INODE


class _Part:
    """A service, its devices and their tokens.

    The devices of one load after the other connect: with 13 loads at once, each with its share of one core, a connection
    ended in its handshake.
    """

    def __init__(self, stack, herald, settings, numbers):
        self.herald, self.numbers = herald, numbers
        provider = Provider(herald)
        self.channel = provider.channel
        size = min(FLEET, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVE)
        self.loads = [
            stack.enter_context(DeviceLoad(
                herald.port("device"), herald.ca, settings.identities, min(size, numbers.stop - first),
                f"apps/{TOPIC}/#,{provider.filter}", first, keep_session=True,
                options=["--from", str(FIRST_ADDRESS + first), "--ping", str(PING), "--tokens"]))
            for first in range(numbers.start, numbers.stop, size)]
        tokens = [token for load in self.loads for token in load.tokens]
        self.requests = Requests(herald.folder.with_name(herald.folder.name + "-requests"), tokens, herald.provider_token(), TOPIC,
                                 int(time.time()) + DAY)

    def notify_each(self, body):
        self.requests.body.write_bytes(body)
        send_each(self.herald, self.requests, self.herald.port("api"), self.requests.tokens, "each")


class _Crowd:
    """All parts, and what they take."""

    def __init__(self, parts, report):
        self.parts, self._report = parts, report
        self.heralds = [part.herald for part in parts]
        self.loads = [load for part in parts for load in part.loads]
        self.devices = sum(len(part.numbers) for part in parts)

    def cpu(self):
        return sum(cpu_seconds(herald.pid) for herald in self.heralds)

    def memory(self):
        return sum(private_memory(herald.pid) for herald in self.heralds)

    def begin(self):
        """Since when the loads count."""
        for load in self.loads:
            load.ask("begin")

    def look(self):
        found = [load.ask("look") for load in self.loads]
        return {**{key: sum(one[key] for one in found) for key in ("received", "lost")},
                "last_ms": max(one["last_ms"] for one in found)}

    def wait(self, key, wanted, seconds=300):
        end = time.monotonic() + seconds
        while (found := self.look())[key] < wanted:
            if time.monotonic() > end:
                raise RuntimeError(f"{found[key]:,.0f} of {wanted:,.0f} devices {key} after {seconds} s")
            time.sleep(0.1)
        return found

    def to_all(self, what, send):
        self.begin()
        before = self.cpu()
        send(payload())
        found = self.wait("received", self.devices)
        if found["lost"]:
            raise RuntimeError(f"{found['lost']:,.0f} devices were lost meanwhile")
        self._report.say(f"{what}: the last device had it after {found['last_ms'] / 1000:.1f} s, "
                         f"{(self.cpu() - before) / self.devices * 1e6:.0f} us CPU each")


class _Sender(threading.Thread):
    """A provider that keeps sending, one notification after another, and counts what it sees."""

    def __init__(self, part):
        super().__init__(daemon=True)
        self._part, self._bearer, self._ends = part, part.herald.provider_token(), threading.Event()
        self.seen, self.gap = collections.Counter(), 0.0

    def run(self):
        connection, last = None, time.monotonic()
        for place in range(1 << 30):
            token = self._part.requests.tokens[place % len(self._part.requests.tokens)]
            try:
                connection = connection or ProviderConnection(self._part.herald, self._bearer)
                connection.push(token, TOPIC, int(time.time()) + DAY)
                self.seen["200"] += 1
                self.gap, last = max(self.gap, time.monotonic() - last), time.monotonic()
            except Exception as error:
                status = re.search(r"':status': '(\d+)'", str(error))
                self.seen[status[1] if status else type(error).__name__] += 1
                connection = None
            if self._ends.wait(0.01):
                return

    def end(self):
        self._ends.set()
        self.join(60)
        return f"{', '.join(f'{count} times {what}' for what, count in self.seen.most_common())}; {self.gap:.1f} s without a 200"


def crowd(settings, report):
    """Holds a crowd, sends to all of it, restarts the services, and revokes some."""
    if _memory("MemAvailable") < settings.crowd * DEVICE:
        raise RuntimeError(f"{settings.crowd:,} devices take {settings.crowd * DEVICE >> 20:,} MiB; choose less by HERALD_BENCH_CROWD")
    with contextlib.ExitStack() as stack:
        heralds = [stack.enter_context(Herald(WORK / "crowd-0", settings.identities.data))]
        limit = int(heralds[0].counters()['herald_connections_limit{listener="devices"}'])
        parts = math.ceil(settings.crowd / limit)
        heralds += [stack.enter_context(Herald(WORK / f"crowd-{place}", settings.identities.data)) for place in range(1, parts)]
        empty = _cores(heralds, EMPTY)
        memory, kernel, began = sum(private_memory(herald.pid) for herald in heralds), _kernel(), time.monotonic()
        before = sum(cpu_seconds(herald.pid) for herald in heralds)
        ends = [settings.crowd * place // parts for place in range(parts + 1)]
        found = _Crowd([_Part(stack, herald, settings, range(*ends[place:place + 2])) for place, herald in enumerate(heralds)], report)
        each = found.devices * 1024
        report.say(f"{found.devices:,} devices at {parts} services of at most {limit:,}, "
                   f"connected and registered after {time.monotonic() - began:.0f} s, "
                   f"{(found.cpu() - before) / found.devices * 1e6:.0f} us CPU each")
        time.sleep(5)
        report.say(f"memory of a device: {(found.memory() - memory) / each:.1f} KiB private, "
                   f"kernel {(_kernel() - kernel) / 2 / each:.1f} KiB, "
                   f"its load {sum(private_memory(load.pid) for load in found.loads) / each:.1f} KiB")
        _hold(found, settings.crowd_hold, empty, report)
        providers = [Provider(part.herald, part.channel) for part in found.parts]
        found.to_all("a broadcast", lambda body: [provider.send(body) for provider in providers])
        found.to_all("one notification each", lambda body: [part.notify_each(body) for part in found.parts])
        _restart(found, report)
        _revoke(found, settings.identities.pem, report)


def _cores(heralds, seconds):
    """The cores that services use."""
    before = sum(cpu_seconds(herald.pid) for herald in heralds)
    time.sleep(seconds)
    return (sum(cpu_seconds(herald.pid) for herald in heralds) - before) / seconds


def _hold(found, seconds, empty, report):
    found.begin()
    memory = found.memory()
    cores, pings = _cores(found.heralds, seconds), found.devices / PING
    report.say(f"held for {seconds} s: {cores:.3f} cores, {empty:.3f} without devices, so {(cores - empty) / pings * 1e6:.0f} us for each "
               f"of {pings:,.0f} pings a second; "
               f"{(found.memory() - memory) / found.devices:+.0f} bytes each, {found.look()['lost']:.0f} lost")


def _restart(found, report):
    """All services end and start while a provider sends; a notification for each device waits before the first is back."""
    found.begin()
    for herald in found.heralds:
        herald.keeps_ports = True
    sender = _Sender(found.parts[0])
    sender.start()
    time.sleep(1)
    moments = [time.monotonic()]
    for herald in found.heralds:
        herald.process.terminate()
    for herald in found.heralds:
        herald.process.wait(timeout=600)
    moments.append(time.monotonic())
    for herald in found.heralds:
        herald.serve()
    moments.append(time.monotonic())
    for part in found.parts:
        part.notify_each(payload())
    moments.append(time.monotonic())
    before = found.cpu()
    back = sum(load.ask("again")["connected"] for load in found.loads)
    moments.append(time.monotonic())
    stop, start, store, arrive = (end - begin for begin, end in zip(moments, moments[1:]))
    report.say(f"a restart: ended after {stop:.1f} s, ready after {start:.1f} s more; one notification for each stored in {store:.1f} s; "
               f"then {back:,.0f} were back and had it in {arrive:.1f} s, {(found.cpu() - before) / back * 1e6:.0f} us CPU each")
    report.say(f"meanwhile a provider saw: {sender.end()}")


def _revoke(found, pem, report):
    """Some devices of the first service: their connections end, and no other."""
    herald, numbers = found.heralds[0], found.parts[0].numbers[:REVOKED]
    _note_in_ledger(herald, numbers, pem)
    token = (herald.folder / "run" / "admin.token").read_text().strip()
    found.begin()
    lost, before, began = found.look()["lost"], found.cpu(), time.monotonic()
    for number in numbers:
        url = f"http://127.0.0.1:{herald.port('console')}/v1/devices/bench-{number}/revoke"
        request = urllib.request.Request(url, method="POST", headers={"authorization": f"Bearer {token}"})
        urllib.request.urlopen(request, timeout=60).close()
    answered = time.monotonic() - began
    found.wait("lost", lost + len(numbers))
    ended = time.monotonic() - began
    cpu = found.cpu() - before
    time.sleep(15)
    report.say(f"{len(numbers):,} revoked one after another in {answered:.1f} s; their connections had ended after {ended:.1f} s, "
               f"{found.look()['lost'] - lost - len(numbers):.0f} others with them; {cpu / len(numbers) * 1e3:.1f} ms CPU each")


def _note_in_ledger(herald, numbers, pem):
    """The benchmark has signed its certificates itself, and only what is in the ledger can be revoked."""
    with contextlib.closing(sqlite3.connect(herald.folder / "trust" / "ledger.db", timeout=10)) as ledger, ledger:
        for number in numbers:
            certificate = x509.load_pem_x509_certificate((pem / f"{number}.pem").read_bytes())
            serial = certificate.serial_number.to_bytes((certificate.serial_number.bit_length() + 7) // 8, "big").hex()
            row = ledger.execute("INSERT INTO device (id, created) VALUES (?, ?)", (f"bench-{number}", int(time.time() * 1000))).lastrowid
            ledger.execute("INSERT INTO device_certificate VALUES (?, 0, ?, ?)",
                           (row, serial, int(certificate.not_valid_after_utc.timestamp() * 1000)))
