"""How much one device may register, and what is kept of what it removed."""

import re
import urllib.request

from mqtt_packets import Reason
from provider import Provider
from service import eventually

APPS = [f"com.example.app{number}" for number in range(6)]


def metric(service, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{service.doors['console']}/metrics", timeout=10) as answer:
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
    # What is there may be asked for again, and goes on.
    assert old.register(APPS[0]) == tokens[0]
    with Provider(service, certificate, topic=APPS[0]) as provider:
        assert provider.push(tokens[0], {"aps": {"alert": "hello"}}).status == 200
        old.notification(APPS[0])
    # Another device has its own count; and an app that goes makes room.
    tablet.connect().register(*APPS[:3])
    old.unsubscribe(f"apps/{APPS[2]}")
    assert old.subscribe(f"apps/{APPS[5]}").reasons == (1,)
    assert metric(service, "herald_registrations_refused_total") == 4
    eventually(lambda: any("refused another app" in line and phone.id in line for line in service.lines))
    # Once for a connection, however often it asks.
    assert sum("refused another app" in line for line in service.lines) == 3


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


def test_more_apps_than_are_usual_may_be_allowed(fresh, enroll):
    service = fresh("--apps-per-device", "600").start()
    link = enroll(service).connect()
    topics = [f"apps/com.example.many{number}" for number in range(601)]
    reasons = [reason for first in range(0, 601, 200) for reason in link.subscribe(*topics[first:first + 200]).reasons]
    assert reasons == [1] * 600 + [Reason.QUOTA]


def test_of_removed_apps_the_latest_are_remembered_and_no_token_comes_back(fresh, enroll):
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
