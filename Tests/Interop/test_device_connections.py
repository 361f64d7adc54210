"""The device contract: identities, takeover, keep-alive and restarts. Each test is a sentence."""

import concurrent.futures
import contextlib
import os
import socket
import ssl
import time

import pytest
from cryptography import x509

import mqtt_packets as mqtt
from certificates import Authority, uri
from mqtt_device import APPS, MAIL, Identity
from mqtt_packets import Kind, Property, Reason
from mqtt_wire import Closed
from provider import Provider
from service import PATIENCE, TOPIC, Service, eventually, once_within

HELLO = b'{"aps":{"alert":"hello"}}'
BAD_IDENTIFIER = 2


# Identity.


def test_the_identity_is_the_certificates_uri_name_and_common_name(device):
    certificate = x509.load_pem_x509_certificate(device.path.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [name.value for name in names] == [f"urn:herald:device:{device.id}"]
    (common,) = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    assert common.value == device.id
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [x509.ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda tls: tls.name)
def test_a_device_connects_by_tls_1_2_and_1_3(device, version, tls):
    link = device.wire(tls=tls, version=version)
    link.send(mqtt.connect(device.id, version))
    assert link.expect(Kind.CONNACK).reason == 0


@pytest.mark.parametrize("change", ["{0}x", " {0}", "{0} ", "urn:herald:device:{0}", "{0}/{0}"])
def test_another_identifier_is_refused_with_the_right_one(device, change):
    wire = device.wire()
    wire.send(mqtt.connect(change.format(device.id)))
    assert wire.refused_at_connect(Reason.CLIENT_ID).value(Property.REASON_STRING) == f"use {device.id}"


def test_the_identifier_of_another_device_is_refused_and_does_not_disturb_it(device, other, version):
    link = other.connect(version)
    wire = device.wire(version=version)
    wire.send(mqtt.connect(other.id, version))
    wire.refused_at_connect(Reason.CLIENT_ID if version == 5 else BAD_IDENTIFIER)
    link.settled()


def test_an_empty_identifier_takes_over_like_the_devices_own(device, version):
    old = device.connect(version)
    new = device.connect(version, client_id="")
    old.refused(Reason.TAKEN_OVER)
    new.settled()


# One connection per device.


def test_a_newer_connection_takes_over_and_nothing_is_lost(device, version, provider):
    old = device.stay(version)
    token, mail = old.register(TOPIC, MAIL)
    assert provider.push(token, b'{"n":1}').status == 200
    old.notification(acknowledge=False)
    new = device.stay(version)
    assert new.connack.session_present
    old.refused(Reason.TAKEN_OVER)
    assert new.notification().payload == b'{"n":1}'
    assert provider.push(mail, b'{"n":2}', topic=MAIL).status == 200
    assert new.notification(MAIL).payload == b'{"n":2}'


def test_a_newer_connection_of_the_other_version_takes_over(device, version, provider):
    old = device.stay(version)
    token = old.register()
    new = device.stay(9 - version)
    assert new.connack.session_present
    old.refused(Reason.TAKEN_OVER)
    assert provider.push(token, HELLO).status == 200
    assert new.notification().payload == HELLO


def test_notifications_during_a_takeover_arrive(device, version, provider):
    link = device.stay(version)
    tokens = dict(zip(APPS, link.register(*APPS)))
    streams, arrived = [], {}
    for number, (app, token) in enumerate(tokens.items()):
        streams.append(provider.send(token, {"n": number}, topic=app))
        if number in (2, 5):
            link = device.stay(version)
    assert {provider.answer(stream).status for stream in streams} == {200}
    while len(arrived) < len(APPS):
        try:
            found = link.expect(Kind.PUBLISH)
        except Closed:
            raise AssertionError(f"only these arrived: {sorted(arrived)}") from None
        link.acknowledge(found)
        arrived[found.topic] = found.payload
    assert arrived == {f"apps/{app}": b'{"n":%d}' % number for number, app in enumerate(APPS)}


def test_one_of_many_simultaneous_connections_stays(device):
    wires = [device.wire() for _ in range(6)]
    for wire in wires:
        wire.send(mqtt.connect(device.id))

    def is_open(wire):
        try:
            wire.ping()
        except Closed:
            return False
        return True

    # The old connections are closed a moment after the takeover.
    eventually(lambda: sum([is_open(wire) for wire in wires]) == 1, what="one connection alone")
    (one,) = (wire for wire in wires if is_open(wire))
    one.quiet(0.3)
    assert is_open(one)


def test_two_copies_of_a_certificate_are_slowed_down_and_reported(shared, device, other):
    """Each takes over from the other as fast as it can, as two devices with one identity do."""
    untouched = other.connect()
    slowed = False
    for _ in range(60):
        wire = device.wire()
        wire.send(mqtt.connect(device.id))
        try:
            slowed = wire.expect(Kind.CONNACK).reason != 0
        except Closed:
            slowed = True
        if slowed:
            break
    assert slowed, "60 takeovers in a row, each at once"
    eventually(lambda: [line for line in shared.lines if device.id in line], what="a line in the log about the device")
    untouched.settled()


def test_a_slowed_device_connects_when_the_other_copy_has_gone(device):
    for _ in range(15):
        device.wire().send(mqtt.connect(device.id))
    device.close()

    def is_accepted():
        wire = device.wire()
        wire.send(mqtt.connect(device.id))
        try:
            return wire.read().reason == 0
        except Closed:
            return False

    eventually(is_accepted, what="a connection")


# Keep alive. The service of these tests lets a device be silent for two seconds.


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("impatient") / "data", "--keep-alive", "2s").start()
    yield service
    service.close()


@pytest.fixture
def watched(impatient, enroll):
    return enroll(impatient)


@pytest.mark.parametrize("wanted", [0, 3, 65535])
def test_the_service_replaces_a_zero_or_too_long_keep_alive(watched, wanted):
    assert watched.connect(keep_alive=wanted).connack.value(Property.SERVER_KEEP_ALIVE) == 2


def test_the_services_keep_alive_is_enforced(watched):
    began = time.monotonic()
    watched.connect(keep_alive=0).refused_after(3, Reason.KEEP_ALIVE, since=began)


def test_in_3_1_1_the_connection_closes_after_the_longest_silence(watched):
    link = watched.connect(4, keep_alive=0)
    began = time.monotonic()
    # On a machine that pauses it may be over by now.
    with contextlib.suppress(Closed):
        link.settled()
    link.refused_after(3, since=began)


# Being sent away.


def disconnected_link(device, version, tls):
    """A connection that the service has ended, as TLS says; and its TCP beneath, which is still there."""
    link = device.wire(version=version, tls=tls)
    link.send(mqtt.connect(device.id + "x", version))
    link.refused_at_connect(Reason.CLIENT_ID if version == 5 else BAD_IDENTIFIER)
    tcp = socket.socket(fileno=os.dup(link.socket.fileno()))
    tcp.settimeout(PATIENCE)
    return link, tcp


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda tls: tls.name)
def test_a_disconnected_device_that_stays_silent_is_closed_after_a_time(device, version, tls):
    began = time.monotonic()
    _, tcp = disconnected_link(device, version, tls)
    with tcp:
        # That it is closed at all is the service's doing.
        assert tcp.recv(1) == b""
        assert 1.5 < time.monotonic() - began


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda tls: tls.name)
def test_a_disconnected_device_that_answers_is_closed_at_once(device, version, tls):
    def seconds():
        link, tcp = disconnected_link(device, version, tls)
        began = time.monotonic()
        with tcp:
            # A machine that pauses finds it closed, after the two seconds that the service waits for an answer.
            with contextlib.suppress(OSError):
                link.socket.unwrap()
            assert tcp.recv(1) == b""
        return time.monotonic() - began

    once_within(1.5, seconds)


# Restarts of the service


@pytest.fixture
def service(fresh):
    return fresh().start()


def restart(service, how):
    if how == "stop":
        assert service.stop() == 0
    else:
        service.kill()
    return service.start()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_sessions_and_notifications_survive_a_restart(service, enroll, version, how):
    device = enroll(service)
    pem = service.provider_certificate(TOPIC, MAIL, *APPS)
    link = device.stay(version)
    token, mail, off, waiting, dead = link.register(TOPIC, MAIL, *APPS[:3])
    link.unsubscribe(f"apps/{APPS[2]}/#")
    link.publish(f"apps/{APPS[0]}/settings", b'{"enabled":false}')
    with Provider(service, pem) as provider:
        # One in flight and not acknowledged, one acknowledged, one that waits.
        assert provider.push(token, b'{"n":1}').status == 200
        link.notification(acknowledge=False)
        assert provider.push(mail, b'{"n":2}', topic=MAIL).status == 200
        link.notification(MAIL)
        link.settled()
        if how == "kill":
            link.close()
        else:
            link.leave()
        assert provider.push(waiting, b'{"n":3}', topic=APPS[1]).status == 200
        died = provider.push(dead, HELLO, topic=APPS[2]).timestamp
        assert died
    restart(service, how)
    link = device.stay(version)
    assert link.connack.session_present
    found = {came.topic: came.payload for came in (link.next() for _ in range(2))}
    assert found == {f"apps/{TOPIC}": b'{"n":1}', f"apps/{APPS[1]}": b'{"n":3}'}
    link.quiet()
    with Provider(service, pem) as provider:
        assert provider.push(token, HELLO).status == 200
        assert link.notification().payload == HELLO
        assert provider.push(off, HELLO, topic=APPS[0]).status == 200
        assert provider.push(dead, HELLO, topic=APPS[2]).timestamp == died
    link.quiet()
    assert link.register() == token


class Issued(Identity):
    """A device whose certificate the test makes, which is faster than the command."""

    def __init__(self, service, authority, folder, name):
        self.service, self.id, self._links = service, name, []
        self.path = authority.issue(folder / f"{name}.pem", subject=name, names=[uri(f"urn:herald:device:{name}")])

    def comes_back(self):
        """Connects until it succeeds, as a device does; returns the payload that waited."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                link = self.stay()
                assert link.connack.session_present
                return link.notification().payload
            except (OSError, Closed):
                assert time.monotonic() < end, "a device could not connect again"


def test_a_crowd_that_loses_the_service_comes_back(service, tmp_path):
    """All connect again at once and get what waits for them; a provider is served meanwhile."""
    authority = Authority.of_service(service, "device")
    crowd = [Issued(service, authority, tmp_path, f"crowd-{number}") for number in range(100)]
    away = Issued(service, authority, tmp_path, "away")
    pem = service.provider_certificate()
    with concurrent.futures.ThreadPoolExecutor(len(crowd)) as pool:
        tokens = list(pool.map(lambda device: device.stay().register(), crowd))
        other = away.stay().register()
        service.kill()
        for device in (*crowd, away):
            device.close()
        service.start()
        with Provider(service, pem) as provider:
            for token in tokens:
                assert provider.push(token, HELLO).status == 200
            coming = [pool.submit(device.comes_back) for device in crowd]
            while not all(one.done() for one in coming):
                assert provider.push(other, HELLO).status == 200
    assert [one.result() for one in coming] == [HELLO] * len(crowd)
    for device in crowd:
        device.close()


def test_a_session_without_an_interval_ends_at_a_restart(service, enroll):
    device = enroll(service)
    link = device.connect(clean=True)
    token = link.register()
    link.leave()
    restart(service, "stop")
    link = device.connect(clean=False)
    assert not link.connack.session_present
    assert link.register() == token


def test_a_stopping_service_disconnects_devices_and_loses_nothing(service, enroll):
    newer, older = enroll(service), enroll(service)
    pem = service.provider_certificate()
    five, three = newer.stay(), older.stay(4)
    tokens = [five.register(), three.register()]
    with Provider(service, pem) as provider:
        for link, token in zip((five, three), tokens):
            assert provider.push(token, HELLO).status == 200
            link.notification(acknowledge=False)
    assert service.stop() == 0
    five.refused(Reason.SHUTTING_DOWN)
    three.refused()
    service.start()
    for link in (newer.stay(), older.stay(4)):
        assert link.notification().payload == HELLO


def test_a_stop_does_not_wait_for_a_device_that_does_not_read(fresh, enroll):
    def seconds():
        service = fresh().start()
        link = enroll(service).connect()
        token = link.register()
        with Provider(service, service.provider_certificate()) as provider:
            for number in range(100):
                assert provider.push(token, {"n": number, "fill": "x" * 3000}).status == 200
        began = time.monotonic()
        assert service.stop() == 0
        return time.monotonic() - began

    # Before the end of the grace period, and of what comes after it.
    once_within(14, seconds)
