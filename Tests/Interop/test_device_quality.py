"""Quality of service: what waits and how long, background notifications and their budget, fair limits. Each test is a
sentence of docs/providers.md, shown with h2, curl and h2load against a service whose clock is moved."""

import json
import re
import subprocess
import time

import pytest

from mqtt_device import MAIL
from mqtt_packets import Property
from parties import advance
from provider import Provider, provider_token
from service import PATIENCE, TOPIC, eventually

HELLO = {"aps": {"alert": "hello"}}
SILENT = {"aps": {"content-available": 1}}
MAGAZINE = "com.example.magazine"
BACKGROUND = {"push_type": "background", "priority": 5}
SAVING, SPENDING = b'{"saving":true}', b'{"saving":false}'
OFF, ON = b'{"enabled":false}', b'{"enabled":true}'
MONTH = 30 * 86_400


@pytest.fixture
def movable(fresh):
    """A service for one test: its clock is moved by hours, and certificates know no other than the system's."""
    return fresh("--clock", "adjustable", "--newsstand-topic", MAGAZINE).start()


@pytest.fixture
def sender(movable):
    with Provider(movable, movable.provider_certificate(TOPIC, MAIL, MAGAZINE)) as connection:
        yield connection


@pytest.fixture
def phone(movable, enroll):
    return enroll(movable)


def said(service, answer, *words):
    """Waits until the journal says all of this about a notification."""
    eventually(
        lambda: all(word in str(service.journal(answer.id)) for word in words), what=f"{words} in the journal"
    )


def accepted(answer):
    assert answer.status == 200, answer.body
    return answer


def spend(link, sender, token, count=3, **options):
    for number in range(count):
        accepted(sender.push(token, {**SILENT, "n": number}, **{**BACKGROUND, **options}))
        assert link.notification().payload == json.dumps({**SILENT, "n": number}, separators=(",", ":")).encode()


def service_now(service):
    token = (service.data / "run" / "admin.token").read_text().strip()
    result = subprocess.run(
        ["curl", "-sf", "-H", f"authorization: Bearer {token}", f"http://127.0.0.1:{service.listeners['console']}/v1/clock"],
        capture_output=True, text=True, check=True, timeout=PATIENCE,
    )
    now = json.loads(result.stdout)["now"]
    return int(subprocess.run(["date", "-d", now, "+%s"], capture_output=True, text=True, check=True).stdout)


# Background notifications.


def test_the_fourth_background_notification_in_an_hour_is_held_until_the_budget_allows(movable, phone, sender, version):
    link = phone.stay(version)
    token = link.register()
    spend(link, sender, token)
    held = accepted(sender.push(token, HELLO, explain=1, **BACKGROUND))
    assert "held: the background budget" in held.header("herald-explanation")
    assert "tries again at " in held.header("herald-explanation")
    link.quiet()
    said(movable, held, "stored", "background budget")
    # An hour has three; how long the test itself has taken does not matter.
    advance(movable, 1100)
    link.quiet()
    advance(movable, 110)
    assert link.notification().payload == b'{"aps":{"alert":"hello"}}'
    said(movable, held, "delivered from storage")


def test_the_newest_held_notification_comes_and_the_others_are_journaled(movable, phone, sender, version):
    link = phone.stay(version)
    token = link.register()
    spend(link, sender, token)
    held = [accepted(sender.push(token, {**SILENT, "held": n}, **BACKGROUND)) for n in range(3)]
    advance(movable, 1201)
    assert json.loads(link.notification().payload)["held"] == 2
    link.quiet()
    for older in held[:2]:
        said(movable, older, "replaced")


def test_a_silent_payload_without_a_push_type_is_a_background_notification(movable, phone, sender, version):
    link = phone.stay(version)
    token = link.register()
    for number in range(3):
        accepted(sender.push(token, {**SILENT, "n": number}, priority=10))
        found = link.notification()
        if version == 5:
            properties = dict(value for name, value in found.properties if name == Property.USER)
            assert (properties["apns-push-type"], properties["apns-priority"]) == ("background", "5")
    said(movable, accepted(sender.push(token, SILENT)), "background budget")
    link.quiet()


def test_other_notifications_have_no_budget(phone, sender, version):
    link = phone.stay(version)
    token = link.register()
    for number in range(10):
        accepted(sender.push(token, {"aps": {"alert": "a", "content-available": 1}, "n": number}, push_type="alert"))
        link.notification()


def test_a_budget_belongs_to_one_app_on_one_device(movable, enroll, phone, sender):
    link = phone.stay()
    token, mail = link.register(TOPIC, MAIL)
    spend(link, sender, token)
    accepted(sender.push(mail, SILENT, topic=MAIL, **BACKGROUND))
    link.notification(MAIL)
    second = enroll(movable).stay()
    accepted(sender.push(second.register(), SILENT, **BACKGROUND))
    second.notification()


def test_the_budget_outlives_the_connection(movable, phone, sender, version):
    link = phone.stay(version)
    token = link.register()
    spend(link, sender, token)
    link.leave()
    accepted(sender.push(token, SILENT, **BACKGROUND))
    link = phone.stay(version)
    link.quiet()
    advance(movable, 1201)
    link.notification()


def test_a_subscription_at_qos_0_has_the_same_budget(movable, phone, sender, version):
    link = phone.stay(version)
    token = link.register(qos=0)
    spend(link, sender, token)
    said(movable, accepted(sender.push(token, SILENT, **BACKGROUND)), "background budget")
    link.quiet()
    advance(movable, 1201)
    link.notification()


def test_a_held_notification_expires(movable, phone, sender):
    link = phone.stay()
    token = link.register()
    spend(link, sender, token)
    held = accepted(sender.push(token, SILENT, expiration=service_now(movable) + 600, **BACKGROUND))
    advance(movable, 1300)
    said(movable, held, "discarded from storage", "expired")
    link.quiet()


def test_an_unstored_notification_over_the_budget_is_discarded(movable, phone, sender):
    link = phone.stay()
    token = link.register()
    spend(link, sender, token)
    answer = accepted(sender.push(token, SILENT, expiration=0, explain=1, **BACKGROUND))
    assert "background budget is spent" in answer.header("herald-explanation")
    said(movable, answer, "background budget is spent")
    advance(movable, 1300)
    link.quiet()


def test_an_alert_replaces_a_held_notification(movable, phone, sender):
    link = phone.stay()
    token = link.register()
    spend(link, sender, token)
    held = accepted(sender.push(token, SILENT, **BACKGROUND))
    said(movable, held, "background budget")
    accepted(sender.push(token, HELLO))
    link.notification()
    said(movable, held, "replaced")
    advance(movable, 1300)
    link.quiet()


def test_a_held_notification_survives_a_crash_and_a_reconnect(fresh, enroll, version):
    service = fresh().start()
    with Provider(service, service.provider_certificate(TOPIC)) as sender:
        device = enroll(service)
        link = device.stay(version)
        token = link.register()
        spend(link, sender, token)
        held = accepted(sender.push(token, {"held": 1}, **BACKGROUND))
        said(service, held, "background budget")
        service.kill()
        link.close()
    service.start()
    assert device.stay(version).notification().payload == b'{"held":1}'


def test_without_a_limit_nothing_is_held(fresh, enroll):
    service = fresh("--background-per-hour", "0").start()
    with Provider(service, service.provider_certificate(TOPIC)) as sender:
        link = enroll(service).stay()
        spend(link, sender, link.register(), count=20)


# Power, and newsstand apps.


@pytest.mark.parametrize("qos", [0, 1])
def test_power_saving_outlives_a_crash_and_holds_for_both_qualities_of_service(fresh, enroll, version, qos):
    service = fresh().start()
    with Provider(service, service.provider_certificate(TOPIC)) as sender:
        device = enroll(service)
        link = device.stay(version)
        token = link.register(qos=qos)
        link.publish("device/power", SAVING)
        waiting = accepted(sender.push(token, {"n": 1}, priority=1, explain=1))
        assert "saves power" in waiting.header("herald-explanation")
        service.kill()
        link.close()
    service.start()
    with Provider(service, service.provider_certificate(TOPIC)) as sender:
        link = device.stay(version)
        link.quiet()
        accepted(sender.push(token, {"n": 2}, priority=5))
        link.quiet()
        link.publish("device/power", SPENDING)
        assert link.notification().payload == b'{"n":2}'
        link.quiet()


def test_power_saving_ends_with_the_first_report_after_a_reconnect(phone, sender, version):
    link = phone.stay(version)
    token = link.register()
    link.publish("device/power", SAVING)
    link.leave()
    accepted(sender.push(token, {"n": 1}, priority=5))
    link = phone.stay(version)
    link.publish("device/power", SPENDING)
    assert link.notification().payload == b'{"n":1}'
    accepted(sender.push(token, {"n": 2}, priority=1))
    assert link.notification().payload == b'{"n":2}'


def test_an_unstored_notification_is_not_held_for_power(movable, phone, sender):
    link = phone.stay()
    token = link.register()
    link.publish("device/power", SAVING)
    answer = accepted(sender.push(token, HELLO, priority=1, expiration=0, explain=1))
    assert "saves power" in answer.header("herald-explanation")
    said(movable, answer, "the device saves power")
    link.publish("device/power", SPENDING)
    link.quiet()


def test_a_newsstand_app_gets_one_a_day_while_the_device_saves_power(movable, phone, sender):
    link = phone.stay()
    magazine, token = link.register(MAGAZINE, TOPIC)
    link.publish("device/power", SAVING)
    accepted(sender.push(token, SILENT, **BACKGROUND))
    accepted(sender.push(magazine, {**SILENT, "n": 1}, topic=MAGAZINE, **BACKGROUND))
    assert json.loads(link.notification(MAGAZINE).payload)["n"] == 1
    accepted(sender.push(magazine, {**SILENT, "n": 2}, topic=MAGAZINE, **BACKGROUND))
    link.quiet()
    advance(movable, 86_410)
    assert json.loads(link.notification(MAGAZINE).payload)["n"] == 2
    link.quiet()


# Notifications that are switched off.


def test_switching_off_discards_a_waiting_notification(movable, phone, sender, version):
    link = phone.stay(version)
    token = link.register()
    link.publish("device/power", SAVING)
    waiting = accepted(sender.push(token, HELLO, priority=5))
    link.publish(f"apps/{TOPIC}/settings", OFF)
    said(movable, waiting, "power", "discarded from storage", "disabled")
    link.publish(f"apps/{TOPIC}/settings", ON)
    link.publish("device/power", SPENDING)
    link.quiet()


def test_switching_off_survives_a_crash(fresh, enroll, version):
    service = fresh().start()
    device = enroll(service)
    link = device.stay(version)
    token = link.register()
    link.publish(f"apps/{TOPIC}/settings", OFF)
    service.kill()
    link.close()
    service.start()
    with Provider(service, service.provider_certificate(TOPIC)) as sender:
        link = device.stay(version)
        for expiration in (None, 0):
            answer = accepted(sender.push(token, HELLO, expiration=expiration, explain=1))
            assert "switched off" in answer.header("herald-explanation")
            said(service, answer, "discarded", "disabled")
        link.quiet()


# Storage.


def test_a_stored_notification_is_kept_for_exactly_thirty_days(movable, phone, sender, version):
    link = phone.stay(version)
    token = link.register()
    link.leave()
    accepted(sender.push(token, HELLO))
    # Two minutes are left for the test.
    advance(movable, MONTH - 120)
    link = phone.connect(version)
    link.register()
    found = link.notification(acknowledge=False)
    if version == 5:
        assert 0 < dict(found.properties)[Property.MESSAGE_EXPIRY] <= 120
    phone.close()
    advance(movable, 121)
    link = phone.connect(version)
    link.register()
    link.quiet()


def test_an_expiration_is_limited_to_thirty_days(movable, phone, sender):
    link = phone.stay()
    token = link.register()
    link.leave()
    answer = accepted(sender.push(token, HELLO, expiration=service_now(movable) + 10 * MONTH))
    advance(movable, MONTH + 1)
    link = phone.connect()
    link.register()
    link.quiet()
    said(movable, answer, "discarded from storage", "expired")


def test_a_notification_that_expires_in_the_queue_is_not_sent(movable, phone, sender):
    """The device is connected, with a window of one, and takes its time."""
    link = phone.stay(properties=((Property.RECEIVE_MAXIMUM, 1),))
    token = link.register()
    first = accepted(sender.push(token, {"n": 1}))
    slow = link.notification(acknowledge=False)
    late = accepted(sender.push(token, {"n": 2}, expiration=service_now(movable) + 60))
    advance(movable, 62)
    link.acknowledge(slow)
    link.quiet()
    said(movable, late, "expired")
    said(movable, first, "delivered")


def test_a_passed_expiration_is_explained(phone, sender):
    link = phone.stay()
    token = link.register()
    link.leave()
    answer = accepted(sender.push(token, HELLO, expiration=300, explain=1))
    assert "seconds since 1970" in answer.header("herald-explanation")


@pytest.mark.parametrize("ids", [("score", "score"), ("score", "weather"), (None, "score"), ("score", None)])
def test_one_notification_waits_for_an_app_despite_collapse_identifiers(movable, phone, sender, version, ids):
    link = phone.stay(version)
    token = link.register()
    link.leave()
    older, newer = (
        accepted(sender.push(token, {"n": n}, collapse_id=identifier)) for n, identifier in enumerate(ids)
    )
    link = phone.stay(version)
    found = link.notification()
    assert found.payload == b'{"n":1}'
    if version == 5:
        properties = dict(value for name, value in found.properties if name == Property.USER)
        assert properties.get("apns-collapse-id") == ids[1]
    link.quiet()
    said(movable, older, "replaced", newer.id.lower())


def test_collapse_identifiers_belong_to_one_app(phone, sender):
    link = phone.stay()
    token, mail = link.register(TOPIC, MAIL)
    link.leave()
    accepted(sender.push(token, {"n": 1}, collapse_id="same"))
    accepted(sender.push(mail, {"n": 2}, collapse_id="same", topic=MAIL))
    link = phone.stay()
    assert {link.next().topic for _ in range(2)} == {f"apps/{TOPIC}", f"apps/{MAIL}"}


# Explanations.


def test_the_outcome_of_a_notification_is_explained(phone, sender):
    link = phone.stay()
    token = link.register()
    stream = sender.send(token, HELLO, explain=1)
    link.notification()
    words = sender.answer(stream).header("herald-explanation")
    assert words.startswith(("delivered: ", "stored: Herald "))
    link.leave()
    away = accepted(sender.push(token, HELLO, explain=1))
    assert away.header("herald-explanation").startswith("stored: the device is away")
    once = accepted(sender.push(token, HELLO, expiration=0, explain=1))
    assert once.header("herald-explanation") == "discarded: the provider asked for no storage, and the device is away"


# Fair limits.


def test_too_many_for_one_token_are_refused_for_it_alone(fresh, enroll):
    service = fresh("--token-burst", "50", "--token-rate", "1", "--clock", "adjustable").start()
    link = enroll(service).stay()
    token, mail = link.register(TOPIC, MAIL)
    link.leave()
    with Provider(service, service.provider_certificate(TOPIC, MAIL)) as sender:
        began = time.monotonic()
        answers = sender.push_many([token] * 200)
        spent = time.monotonic() - began
        refused = [answer for answer in answers if answer.status != 200]
        assert 150 - spent - 1 <= len(refused) <= 150
        for answer in refused:
            assert (answer.status, answer.reason, answer.header("retry-after")) == (429, "TooManyRequests", "1")
        assert accepted(sender.push(mail, topic=MAIL))
        explained = [answer for answer in sender.push_many([token] * 100, explain=1) if answer.status == 429]
        assert explained and all("too many" in answer.json["explanation"] for answer in explained)
        advance(service, 60)
        assert {answer.status for answer in sender.push_many([token] * 50)} == {200}


def test_a_flood_beyond_the_memory_limit_is_refused(fresh, enroll, tmp_path):
    """h2load has 1,600 notifications of 4 KB under way at once; the memory is one MiB, and the disk is a slow one."""
    calls = "fdatasync,fsync"
    slow = ["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:delay_enter=100000"]
    service = fresh("--notification-memory", "1", "--token-rate", "0", prefix=slow).start()
    device = enroll(service)
    link = device.stay()
    token = link.register()
    link.leave()
    body = tmp_path / "payload.json"
    body.write_bytes(b'{"a":"' + b"x" * 4080 + b'"}')
    result = subprocess.run(
        [
            "h2load", "--requests=8000", "--clients=8", "--max-concurrent-streams=200", f"--data={body}",
            f"--header=apns-topic: {TOPIC}", f"--header=authorization: bearer {provider_token(service.provider_key())}",
            f"https://127.0.0.1:{service.listeners['api']}/3/device/{token}",
        ],
        capture_output=True, text=True, timeout=3 * PATIENCE,
    )
    taken, refused = map(int, re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, (\d+) 5xx", result.stdout).groups())
    assert taken > 0 and refused > 0 and taken + refused == 8000, result.stdout
    with Provider(service, service.provider_certificate(TOPIC)) as sender:
        accepted(sender.push(token, {"last": 1}))
    assert device.stay().notification().payload == b'{"last":1}'
