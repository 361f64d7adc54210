"""Limits of one device's registrations, and of the removed ones that are remembered."""

import re
import urllib.request

import pytest

import mqtt_packets as mqtt
from mqtt_packets import Kind, Property, Reason
from provider import Provider
from service import PATIENCE, eventually, herald

APPS = [f"com.example.app{number}" for number in range(6)]


def metric(service, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))


def test_an_app_past_the_cap_is_refused_and_nothing_is_lost(fresh, enroll):
    service = fresh("--apps-per-device", "3").start()
    certificate = service.provider_certificate(*APPS)
    phone, tablet = enroll(service), enroll(service)
    link = phone.stay()
    tokens = link.register(*APPS[:2])
    suback = link.subscribe(*[f"apps/{topic}" for topic in APPS[1:5]])
    assert suback.reasons == (1, 1, Reason.QUOTA, Reason.QUOTA)
    # Across sessions as well: a clean start drops subscriptions, and no registration.
    link = phone.connect(clean=True)
    assert link.subscribe(f"apps/{APPS[5]}/#").reasons == (Reason.QUOTA,)
    old = phone.connect(4)
    assert old.subscribe(f"apps/{APPS[5]}/#").reasons == (0x80,)
    # Registered apps may be registered again, and stay.
    assert old.register(APPS[0]) == tokens[0]
    with Provider(service, certificate, topic=APPS[0]) as provider:
        assert provider.push(tokens[0], {"aps": {"alert": "hello"}}).status == 200
        old.notification(APPS[0])
    # Another device has its own count; and an app that goes makes room.
    tablet.connect().register(*APPS[:3])
    old.unsubscribe(f"apps/{APPS[2]}")
    assert old.subscribe(f"apps/{APPS[5]}").reasons == (1,)
    eventually(lambda: metric(service, "herald_registrations_refused_total") == 4, what="the count")
    eventually(lambda: any("app refused: the device" in line and phone.id in line for line in service.lines))
    # Once for a connection, however often it asks.
    eventually(lambda: sum("app refused: the device" in line for line in service.lines) == 3, what="three lines")


def test_the_cap_holds_after_a_restart(fresh, enroll):
    service = fresh("--apps-per-device", "2").start()
    phone = enroll(service)
    phone.stay().register(*APPS[:2])
    service.stop()
    service.start()
    link = phone.connect()
    assert link.subscribe(f"apps/{APPS[2]}").reasons == (Reason.QUOTA,)
    assert link.subscribe(f"apps/{APPS[1]}").reasons == (1,)


def test_the_apps_of_one_packet_share_a_few_syncs(fresh, enroll, tmp_path):
    """Each sync takes 50 ms longer: what does not wait for the one before it is gathered into the next."""
    calls, trace = "fsync,fdatasync", tmp_path / "trace"
    slow = ["strace", "-f", "-o", trace, "-e", f"trace={calls}", "-e", f"inject={calls}:delay_enter=50000"]
    service = fresh(prefix=slow).start()
    link = enroll(service).stay()
    filters = [f"apps/com.example.app{number}" for number in range(100)]

    def syncs():
        return len(re.findall(r"(?m)^\d+ +fd?a?t?a?sync\(", trace.read_text()))

    before = syncs()
    assert before > 0
    assert set(link.subscribe(*filters).reasons) == {1}
    subscribed = syncs()
    assert set(link.unsubscribe(*filters).reasons) == {0}
    # One after the other they would be 200, a number and a registration for each app, and 100.
    assert subscribed - before <= 20 and syncs() - subscribed <= 20
    assert set(link.unsubscribe(*filters).reasons) == {Reason.NO_SUBSCRIPTION_EXISTED}


def test_a_setting_raises_the_app_limit(fresh, enroll):
    service = fresh("--apps-per-device", "600").start()
    link = enroll(service).connect()
    topics = [f"apps/com.example.many{number}" for number in range(601)]
    reasons = [reason for first in range(0, 601, 200) for reason in link.subscribe(*topics[first:first + 200]).reasons]
    assert reasons == [1] * 600 + [Reason.QUOTA]


def test_the_latest_removed_apps_are_remembered_and_no_token_returns(fresh, enroll):
    service = fresh().start()
    certificate = service.provider_certificate(APPS[0], APPS[1])
    link = enroll(service).connect()
    (first,) = [link.register(APPS[0])]
    second = link.register(APPS[1])
    link.unsubscribe(f"apps/{APPS[0]}/#")
    with Provider(service, certificate) as provider:
        def push(token, topic):
            answer = provider.push(token, {"aps": {"alert": "hello"}}, topic=topic)
            return answer.status, answer.reason

        assert push(first, APPS[0]) == (410, "Unregistered")
        # Five hundred are remembered; one more, and the first is forgotten: its token is one that nobody knows.
        filters = [f"apps/com.example.passing{number}" for number in range(500)]
        for start in range(0, 500, 100):
            link.subscribe(*filters[start:start + 100])
            link.unsubscribe(*filters[start:start + 100])
        assert push(first, APPS[0]) == (400, "BadDeviceToken")
        assert push(second, APPS[1]) == (200, None)
        link.notification(APPS[1])
        # Installed again it has another token, and the old one stays dead, before a restart and after it.
        again = link.register(APPS[0])
        assert again != first
        assert push(first, APPS[0])[0] == 410
        service.stop()
        service.start()
    with Provider(service, certificate, topic=APPS[0]) as provider:
        assert provider.push(first).status == 410
        assert provider.push(again).status == 200


@pytest.mark.parametrize("version", [5, 4])
def test_tokens_do_not_pile_up_for_a_device_that_acknowledges_nothing(shared, enroll, version):
    properties = ((Property.RECEIVE_MAXIMUM, 1),) if version == 5 else ()
    link = enroll(shared).connect(version, properties=properties)
    filters = [(f"apps/com.example.piled{number}/token", 1) for number in range(50)]
    tokens = []

    def until(kind):
        while (packet := link.read()).kind != kind:
            assert packet.kind == Kind.PUBLISH
            tokens.append(packet)

    for number in range(1, 21):
        link.send(mqtt.subscribe(number, *filters, version=version))
        until(Kind.SUBACK)
    # In flight is what the window allows; behind it one token waits for each other app, and not twenty.
    window = 1 if version == 5 else 20
    assert len(tokens) == window
    while len(tokens) < 50:
        link.acknowledge(*tokens[-window:])
        until_now = len(tokens)
        while len(tokens) < min(50, until_now + window):
            tokens.append(link.expect(Kind.PUBLISH))
    link.acknowledge(*tokens[-window:])
    link.settled()
    assert len({packet.topic for packet in tokens}) == 50
    # Acknowledged, it is sent again to a device that subscribes again.
    link.send(mqtt.subscribe(21, filters[0], version=version))
    assert link.expect(Kind.SUBACK).reasons == (1,)
    assert link.expect(Kind.PUBLISH).payload == next(p.payload for p in tokens if p.topic == filters[0][0])


def test_a_packet_with_too_many_filters_is_refused_before_any_work(shared, enroll):
    phone = enroll(shared)
    filters = [f"apps/com.example.f{number}" for number in range(1001)]
    link = phone.connect()
    suback = link.subscribe(*filters)
    assert set(suback.reasons) == {Reason.QUOTA} and len(suback.reasons) == 1001
    assert "1000 filters" in dict(suback.properties)[Property.REASON_STRING]
    assert set(link.unsubscribe(*filters).reasons) == {Reason.IMPLEMENTATION_SPECIFIC}
    # 3.1.1 has no reason codes: SUBACK says failure, and a device must not believe that apps are removed.
    old = phone.connect(4)
    assert set(old.subscribe(*filters).reasons) == {0x80}
    old.send(mqtt.unsubscribe(9, *filters, version=4))
    assert not old.until_closed()


def test_one_device_does_not_use_up_the_names_of_apps(fresh, enroll):
    service = fresh("--clock", "adjustable").start()
    greedy, other = enroll(service, "greedy"), enroll(service)
    link = greedy.connect()

    def bring(first, count):
        """Registers new apps and removes them again: how many were granted, and the reason for the others."""
        granted, reason = 0, None
        for start in range(first, first + count, 100):
            filters = [f"apps/com.example.new{number}" for number in range(start, min(start + 100, first + count))]
            suback = link.subscribe(*filters)
            granted += sum(code == 1 for code in suback.reasons)
            assert set(suback.reasons) <= {1, Reason.QUOTA}
            reason = dict(suback.properties).get(Property.REASON_STRING, reason)
            link.unsubscribe(*filters)
        return granted, reason

    granted, reason = bring(0, 700)
    assert granted == 600 and "new app names" in reason
    # Names that somebody has are free, and others bring their own.
    assert link.subscribe("apps/com.example.new0").reasons == (1,)
    assert other.connect().subscribe("apps/com.example.mine", "apps/com.example.new1").reasons == (1, 1)
    eventually(lambda: any("new app names are refused" in line for line in service.lines), what="the log")
    said = [line for line in service.lines if "new app names are refused" in line]
    assert len(said) == 1 and greedy.id in said[0] and other.id not in said[0]
    # The next day there are new ones, until there are a thousand; a restart gives none back.
    herald("clock", "advance", "25h", "--data", service.data)
    assert bring(1000, 500)[0] == 400
    service.stop()
    service.start()
    herald("clock", "advance", "25h", "--data", service.data)
    link = greedy.connect()
    assert bring(2000, 1)[0] == 0
    # The operator forgets one that nothing uses.
    herald("app", "forget", "com.example.new3", "--data", service.data)
    assert bring(2000, 2)[0] == 1
