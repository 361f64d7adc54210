"""Devices, providers, channels, credentials and reloads come and go for an hour, and nothing grows.

Only `make soak` runs this. `make test` runs test_slopes_found.py, which shows that a leak would be found.
"""

import contextlib
import os
import re
import signal
import socket
import time

import pytest

import binary
import channels
import slopes
from mqtt_device import Identity
from provider import Provider, connect_tls, tls_context
from service import TOPIC, eventually, herald

#: Seconds of one round.
ROUND = 10
#: Notifications of one round to devices that are away, and their devices.
PUSHES, AWAY = 400, 4
#: Devices that come and go, and how often each kind of stranger comes.
GUESTS, STRANGERS = 8, 3
#: Notifications that fill a journal of 1 MiB before the samples begin.
FULL = 20_000
#: Apps that come and go on the devices, again and again.
APPS = [f"com.example.churn{number}" for number in range(40)]
MIB, KIB = 1 << 20, 1 << 10
#: The growth in all that is not a failure. After the warm-up an hour has some 20,000 connections and 120,000 notifications: a leak of
#: 210 bytes for a connection, or of 35 for a notification, is more than the limit for memory.
LIMITS = {"memory": 4 * MIB, "descriptors": 4, "threads": 2, "store": MIB, "run": 64 * KIB}
#: The ledger and the revocation lists keep each certificate by design: bytes for one, and for the pages of a file.
CERTIFICATE, PAGES = 2 * KIB, 256 * KIB


class Churn:
    """Everything that comes and goes in a round: at one service, or at the nodes of a cluster."""

    def __init__(self, *nodes):
        self.nodes = nodes
        self._turn(0)
        service = self.service
        self.topics = (TOPIC, *APPS)
        self.certificate = service.provider_certificate(*self.topics)
        self.key = service.provider_key()
        self.away = [Identity(service, f"away{number}") for number in range(AWAY)]
        self.tokens = []
        for device in self.away:
            with contextlib.closing(device):
                self.tokens.append(device.stay().register())
        self.guests = [Identity(service, f"guest{number}") for number in range(GUESTS)]
        #: Sums over all rounds.
        self.connections = self.notifications = self.certificates = 0

    def _turn(self, number):
        """The nodes of providers, of devices that come, and of devices that move: in each round others, if there are others."""
        self.service, self.here, self.there = (self.nodes[(number + place) % len(self.nodes)] for place in range(3))

    def fill_journals(self):
        for node in self.nodes:
            with Provider(node, self.certificate) as provider:
                for _ in range(FULL // 1000):
                    provider.push_many(self.tokens * (1000 // AWAY))

    def play(self, number):
        self._turn(number)
        self.providers(number)
        self.devices(number)
        self.broadcasts(number)
        self.strangers()
        self.credentials(number)
        for node in self.nodes:
            os.kill(node.pid, signal.SIGHUP)

    def providers(self, number):
        """Both kinds of credentials and both interfaces, accepted and refused requests, and connections that are cut."""
        for credential in ({"certificate": self.certificate}, {"key": self.key}):
            with Provider(self.service, **credential) as provider:
                tokens = [self.tokens[each % AWAY] for each in range(PUSHES // 2)]
                payload = {"aps": {"alert": "x" * (number * 37 % 3000)}}
                assert {answer.status for answer in provider.push_many(tokens, payload)} == {200}
                assert provider.push("0" * 64).status == 400
                assert provider.push(self.tokens[0], topic="com.example.nobody").status in (400, 403)
                # A request that is not finished, on a connection that ends.
                provider.send(self.tokens[0], {"aps": {}}, end=False)
        with binary.Binary(self.service, self.certificate) as connection:
            connection.send(binary.enhanced(number, self.tokens[0]))
            connection.send(binary.enhanced(number, "0" * 64))
            connection.rest()
        self.connections += 3
        self.notifications += PUSHES

    def devices(self, number):
        """Connections that end in each way, a takeover, and apps that come and go."""
        apps = [APPS[(number * 5 + each) % len(APPS)] for each in range(5)]
        with Provider(self.service, self.certificate) as provider:
            for place, device in enumerate(self.guests):
                version = 5 if (number + place) % 2 else 4
                device.service = self.here
                with contextlib.closing(device):
                    link = device.connect(version, clean=True)
                    tokens = link.register(*apps)
                    for token, app in zip(tokens, apps):
                        assert provider.push(token, topic=app).status == 200
                        link.notification(app)
                    # The service has read the acknowledgements: nothing is in flight for the next connection.
                    link.caught_up()
                    device.service = self.there
                    newer = device.stay(version)
                    link.until_closed()
                    newer.register(*apps)
                    newer.unsubscribe(*(f"apps/{app}/#" for app in apps))
                    if place % 2:
                        newer.leave()
                self.connections += 2
                self.notifications += len(apps)
        for device in self.away:
            # It takes what was stored for it.
            device.service = self.there
            with contextlib.closing(device):
                link = device.stay()
                link.notification()
                link.leave()
            self.connections += 1

    def broadcasts(self, number):
        device = self.guests[0]
        device.service = self.here
        with Provider(self.service, self.certificate) as provider, contextlib.closing(device):
            channel = channels.create(provider, policy=number % 2)
            link = device.connect()
            link.subscribe(channels.filter_of(channel))
            channels.publish(provider, channel)
            link.next(channels.filter_of(channel))
            assert channels.delete(provider, channel).status == 204
        self.connections += 2

    def strangers(self):
        """Connections that never become a client."""
        context = tls_context(self.service.ca)
        for listener in ("api", "device", "binary", "feedback", "activation") * STRANGERS:
            port = self.service.listeners[listener]
            socket.create_connection(("127.0.0.1", port)).close()
            with socket.create_connection(("127.0.0.1", port)) as plain:
                plain.sendall(b"\x16\x03\x01\x02\x00\x01")
            with contextlib.suppress(OSError):
                connect_tls(port, context).close()
            self.connections += 3

    def credentials(self, number):
        """A device that is enrolled, and revoked while it is connected."""
        device = Identity(self.service, f"revoked{number}")
        device.service = self.here
        with contextlib.closing(device):
            link = device.connect()
            link.register()
            revoke = ("device", "revoke", "--data", self.there.data, device.id)
            eventually(lambda: herald(*revoke, check=False).returncode == 0, what="a node that knows the new device")
            link.until_closed()
        self.connections += 1
        self.certificates += 1


@pytest.mark.slow
def test_nothing_grows(fresh, rounds):
    service = fresh("--journal-size", "1").start()
    folders = [service.data / name for name in ("store", "trust", "run")]
    grows_within(limits_after, Churn(service), rounds, lambda: slopes.measure(service.pid, folders))
    assert service.stop() == 0


def limits_after(certificates):
    """The limits when so many certificates have come."""
    return {**LIMITS, "trust": PAGES + CERTIFICATE * certificates}


def grows_within(limits_after, churn, rounds, take):
    """Plays all rounds, and asserts that nothing that `take` samples grows beyond its limit."""
    churn.fill_journals()
    # Caches fill meanwhile.
    warm = min(max(6, rounds.count // 6), rounds.count // 2)
    watch = slopes.Watch(take, time.monotonic, interval=min(2, (rounds.count - warm) * ROUND / 100))
    for number in rounds:
        began = time.monotonic()
        if number == rounds.first + warm:
            before, first, certificates = take(), began, churn.certificates
            watch.start()
        churn.play(number)
        time.sleep(max(0, began + ROUND - time.monotonic()))  # pace: one round in so many seconds
    watch.stop()

    limits, growth = limits_after(churn.certificates - certificates), watch.slopes(first)
    for name, found in growth.items():
        print(f"{name}: grew by {found}, limit {limits[name]}, levels {slopes.levels(watch.series[name])}")
    # The largest one of several nodes.
    largest = {re.sub(r"\d", "", name): text(name, growth[name]) for name in sorted(growth, key=lambda name: growth[name].growth)}
    rounds.report(
        connections=churn.connections, notifications=churn.notifications, certificates=churn.certificates,
        **{f"{name}_growth": found for name, found in largest.items()},
    )
    # The control: the same samples with a leak in them.
    for name, limit in limits.items():
        leaking = [value + 2 * limit * place / len(watch.times) for place, value in enumerate(watch.series[name])]
        found = slopes.slope(watch.times, leaking)
        assert found.exceeds(limit), f"the samples of {name} are too noisy to find a leak: {found}"
    assert {name: str(found) for name, found in growth.items() if found.exceeds(limits[name])} == {}, f"limits: {limits}"

    def has_ended():
        now = take()
        return all(now[name] <= before[name] + max(2, limits[name] // 2) for name in now if is_count(name))

    eventually(has_ended, timeout=60, what="the end of descriptors and threads")


def is_count(name):
    return name.endswith(("descriptors", "threads", "consumers", "subscriptions"))


def text(name, found):
    """The interval of a slope, in MiB for what is measured in bytes."""
    unit, name_of_unit = (1, "") if is_count(name) else (MIB, " MiB")
    return f"{found.low / unit:+.2f}…{found.high / unit:+.2f}{name_of_unit}"
