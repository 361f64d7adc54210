"""The device contract: delivery and acknowledgement. Each test is a sentence of it."""

import time
import uuid

import pytest

from mqtt_device import APPS, LONG, MAIL
from mqtt_packets import Kind, Property
from mqtt_wire import Silence
from service import TOPIC, eventually

HELLO = b'{"aps":{"alert":"hello"}}'
MONTH = 30 * 86_400


@pytest.fixture
def registered(device, version):
    """A device that is connected and has registered: its connection and its token."""
    link = device.stay(version)
    return link, link.register()


@pytest.fixture
def receiving(device, version, provider):
    """A device to whose connection notifications go straight, one after the other: the connection and its token."""
    link = device.stay(version)
    return link, link.register_and_receive(provider)


@pytest.fixture
def away(device, version):
    """The token of a device that registered and went away; its session is kept."""
    link = device.stay(version)
    token = link.register()
    link.leave()
    return token


def journal(service, answer, words):
    """Waits until the journal has these words about a notification."""
    eventually(lambda: words in str(service.journal(answer.id)), what=f"'{words}' in the journal")


# The payload.

PAYLOADS = {
    "compact": b'{"aps":{"alert":"hello"}}',
    "spaced": b' {\n\t"aps" : { "alert" : "hello" }\r\n}\n',
    "unicode": '{"aps":{"alert":"Grüße, 世界 😀"}}'.encode(),
    "escaped": rb'{"aps":{"alert":"Gr\u00fc\u00dfe \ud83d\ude00 \/ \b"}}',
    "numbers": b'{"aps":{"badge":1e400},"n":[0.10,-0,12345678901234567890]}',
    "twice": b'{"aps":{"alert":"a"},"aps":{"alert":"b"}}',
    "empty": b"{}",
    "order": b'{"z":1,"a":2,"aps":{}}',
    "largest": b'{"a":"' + b"x" * 4088 + b'"}',
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_the_payload_arrives_byte_for_byte(registered, provider, payload):
    link, token = registered
    assert provider.push(token, payload).status == 200
    assert link.notification().payload == payload


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_the_payload_arrives_byte_for_byte_from_storage(device, version, away, provider, payload):
    assert provider.push(away, payload).status == 200
    assert device.stay(version).notification().payload == payload


def test_a_voip_payload_may_have_5120_bytes(device, version, provider):
    link = device.connect(version)
    token = link.register(f"{TOPIC}.voip")
    payload = b'{"a":"' + b"x" * 5112 + b'"}'
    assert provider.push(token, payload, topic=f"{TOPIC}.voip", push_type="voip").status == 200
    assert link.notification(f"{TOPIC}.voip").payload == payload


# Properties of MQTT 5


def test_every_forwarded_header_is_a_user_property(device, provider):
    link = device.connect()
    token = link.register()
    identifier = str(uuid.uuid4())
    answer = provider.push(token, HELLO, id=identifier, push_type="background", priority=5, collapse_id="Ä game")
    assert answer.status == 200
    assert link.notification().user == {
        "apns-id": identifier, "apns-push-type": "background", "apns-priority": "5", "apns-collapse-id": "Ä game",
    }


def test_a_generated_identifier_is_the_one_in_the_answer(device, provider):
    link = device.connect()
    answer = provider.push(link.register(), HELLO, push_type="alert")
    assert link.notification().user == {
        "apns-id": answer.id.lower(), "apns-push-type": "alert", "apns-priority": "10",
    }


def test_an_identifier_arrives_in_lower_case(device, provider):
    link = device.connect()
    identifier = str(uuid.uuid4()).upper()
    assert provider.push(link.register(), HELLO, id=identifier).id == identifier
    assert link.notification().user["apns-id"] == identifier.lower()


def test_the_user_properties_survive_storage(device, provider):
    link = device.stay()
    token = link.register()
    link.leave()
    identifier = str(uuid.uuid4())
    provider.push(token, HELLO, id=identifier, push_type="background", priority=1, collapse_id="game")
    assert device.stay().notification().user == {
        "apns-id": identifier, "apns-push-type": "background", "apns-priority": "1", "apns-collapse-id": "game",
    }


def test_the_content_type_is_json(device, provider):
    link = device.connect()
    assert provider.push(link.register(), HELLO).status == 200
    assert link.notification().value(Property.CONTENT_TYPE) == "application/json"


def test_the_message_expiry_is_the_remaining_lifetime(device, provider):
    link = device.connect()
    expiration = int(time.time()) + 1000
    token, before = link.register(), time.time()
    assert provider.push(token, HELLO, expiration=expiration).status == 200
    left, after = link.notification().value(Property.MESSAGE_EXPIRY), time.time()
    assert expiration - after - 1 <= left <= expiration - before + 1


@pytest.mark.parametrize("expiration", [None, 4_000_000_000], ids=["absent", "far-away"])
def test_the_message_expiry_is_thirty_days_at_most_and_by_default(device, provider, expiration):
    link = device.connect()
    assert provider.push(link.register(), HELLO, expiration=expiration).status == 200
    assert MONTH - 300 <= link.notification().value(Property.MESSAGE_EXPIRY) <= MONTH


@pytest.mark.parametrize("expiration", [0, 1, 1_700_000_000], ids=["zero", "1970", "past"])
def test_an_unstored_notification_has_no_message_expiry(device, provider, expiration):
    link = device.connect()
    assert provider.push(link.register(), HELLO, expiration=expiration).status == 200
    assert link.notification().value(Property.MESSAGE_EXPIRY) is None


def test_retain_is_0(registered, provider):
    link, token = registered
    assert provider.push(token, HELLO).status == 200
    assert not link.notification().retain


# The acknowledgement.


def test_an_acknowledged_notification_is_removed(device, version, registered, provider):
    link, token = registered
    answer = provider.push(token, HELLO)
    link.notification()
    link.leave()
    device.stay(version).quiet()


def test_an_acknowledged_notification_is_delivered_in_the_journal(shared, registered, provider):
    link, token = registered
    stream = provider.send(token, HELLO)
    link.notification()
    journal(shared, provider.answer(stream), "delivered")


def test_an_acknowledged_stored_notification_is_delivered_from_storage_in_the_journal(
    shared, device, version, away, provider
):
    answer = provider.push(away, HELLO)
    journal(shared, answer, "stored")
    device.stay(version).notification()
    journal(shared, answer, "delivered from storage")


def test_an_unacknowledged_notification_is_resent_only_after_a_reconnect(device, version, registered, provider):
    link, token = registered
    assert provider.push(token, HELLO).status == 200
    link.notification(acknowledge=False)
    link.quiet(0.5)
    link.leave()
    link = device.stay(version)
    assert link.notification().payload == HELLO
    link.quiet()
    link.leave()
    device.stay(version).quiet()


def test_an_unacknowledged_notification_is_resent_after_every_reconnect(device, version, registered, provider):
    link, token = registered
    assert provider.push(token, HELLO).status == 200
    for _ in range(3):
        link.notification(acknowledge=False)
        link.leave()
        link = device.stay(version)
    link.notification()


def test_an_unacknowledged_notification_is_resent_after_a_clean_start_and_suback(device, version, registered, provider):
    link, token = registered
    assert provider.push(token, HELLO).status == 200
    link.notification(acknowledge=False)
    link.leave()
    link = device.connect(version)
    link.quiet()
    link.register()
    found = link.notification()
    # A clean start forgets what was in flight: this is a new delivery.
    assert found.payload == HELLO and not found.duplicate


def test_acknowledging_the_older_keeps_the_newer(device, version, receiving, provider):
    link, token = receiving
    assert provider.push(token, b'{"n":1}').status == 200
    assert provider.push(token, b'{"n":2}').status == 200
    older = link.notification(acknowledge=False)
    link.acknowledge(older)
    assert link.notification(acknowledge=False).payload == b'{"n":2}'
    link.leave()
    assert device.stay(version).notification().payload == b'{"n":2}'


def test_acknowledging_the_newer_removes_the_older(device, version, receiving, provider):
    link, token = receiving
    assert provider.push(token, b'{"n":1}').status == 200
    assert provider.push(token, b'{"n":2}').status == 200
    link.notification(acknowledge=False)
    link.acknowledge(link.notification(acknowledge=False))
    link.leave()
    # The newest is delivered, so nothing older is to be shown after it.
    device.stay(version).quiet()


def test_a_notification_at_qos_0_leaves_the_mailbox_when_written(shared, device, version, provider):
    link = device.stay(version)
    token = link.register(qos=0)
    answer = provider.push(token, HELLO)
    assert answer.status == 200
    assert link.notification().qos == 0
    journal(shared, answer, "unacknowledged")
    link.leave()
    device.stay(version).quiet()


def test_a_stored_notification_comes_once_at_qos_0(shared, device, version, provider):
    link = device.stay(version)
    token = link.register(qos=0)
    link.leave()
    answer = provider.push(token, HELLO)
    link = device.stay(version)
    assert link.notification().payload == HELLO
    journal(shared, answer, "unacknowledged")
    link.leave()
    device.stay(version).quiet()


# Waiting.


def test_the_newest_of_an_app_waits(device, version, away, provider):
    answers = [provider.push(away, {"n": number}) for number in range(5)]
    assert {answer.status for answer in answers} == {200}
    link = device.stay(version)
    assert link.notification().payload == b'{"n":4}'
    link.quiet()


def test_a_replaced_notification_is_replaced_in_the_journal(shared, away, provider):
    older = provider.push(away, HELLO)
    newer = provider.push(away, HELLO)
    journal(shared, older, "replaced")
    journal(shared, newer, "stored")


def test_each_app_keeps_its_newest(device, version, provider):
    link = device.stay(version)
    tokens = link.register(*APPS)
    link.leave()
    for number in range(2):
        for app, token in zip(APPS, tokens):
            assert provider.push(token, {"n": number}, topic=app).status == 200
    link = device.stay(version)
    found = [link.expect(Kind.PUBLISH) for _ in APPS]
    assert {came.topic for came in found} == {f"apps/{app}" for app in APPS}
    assert {came.payload for came in found} == {b'{"n":1}'}


def test_a_collapse_identifier_does_not_affect_storage(device, version, away, provider):
    assert provider.push(away, b'{"n":1}', collapse_id="a").status == 200
    assert provider.push(away, b'{"n":2}', collapse_id="b").status == 200
    link = device.stay(version)
    assert link.notification().payload == b'{"n":2}'
    link.quiet()


def test_a_connected_device_gets_all_of_one_collapse_identifier(receiving, provider):
    link, token = receiving
    for number in range(3):
        assert provider.push(token, {"n": number}, collapse_id="same").status == 200
    assert [link.notification().payload for _ in range(3)] == [b'{"n":%d}' % number for number in range(3)]


@pytest.mark.parametrize("expiration", [0, 1_700_000_000], ids=["zero", "past"])
def test_an_unstored_notification_replaces_nothing(device, version, away, provider, expiration):
    assert provider.push(away, b'{"n":1}').status == 200
    assert provider.push(away, b'{"n":2}', expiration=expiration).status == 200
    link = device.stay(version)
    assert link.notification().payload == b'{"n":1}'
    link.quiet()


def test_an_unstored_notification_is_tried_once(device, version, registered, provider):
    link, token = registered
    assert provider.push(token, HELLO, expiration=0).status == 200
    assert link.notification(acknowledge=False).payload == HELLO
    link.leave()
    device.stay(version).quiet()


def test_stored_notifications_are_sent_after_the_suback(device, version, away, provider):
    assert provider.push(away, HELLO).status == 200
    link = device.connect(version)
    link.quiet()
    link.subscribe(f"apps/{TOPIC}")
    assert link.notification().payload == HELLO


def test_stored_notifications_are_sent_after_a_connack_with_session_present(device, version, away, provider):
    assert provider.push(away, HELLO).status == 200
    link = device.stay(version)
    assert link.connack.session_present
    assert link.notification().payload == HELLO


def test_a_stored_notification_is_sent_once_despite_repeated_subscribes(device, version, away, provider):
    assert provider.push(away, HELLO).status == 200
    link = device.connect(version)
    link.register()
    found = link.notification(acknowledge=False)
    for name in (f"apps/{TOPIC}", f"apps/{TOPIC}/#"):
        link.subscribe(name)
    link.token()
    link.quiet()
    link.acknowledge(found)


# Flow control.


def test_overlapping_filters_give_one_copy(device, version, provider):
    link = device.connect(version)
    link.subscribe((f"apps/{TOPIC}/#", 1), (f"apps/{TOPIC}", 0))
    token = link.token()
    assert provider.push(token, HELLO).status == 200
    assert link.notification().qos == 1
    link.quiet()


def test_one_of_two_overlapping_filters_is_enough_at_its_own_qos(device, version, provider):
    link = device.connect(version)
    link.subscribe((f"apps/{TOPIC}/#", 1), (f"apps/{TOPIC}", 0))
    token = link.token()
    link.unsubscribe(f"apps/{TOPIC}/#")
    assert provider.push(token, HELLO).status == 200
    assert link.notification().qos == 0


@pytest.mark.parametrize("maximum", [1, 3, 20])
def test_the_receive_maximum_is_obeyed_and_nothing_is_lost(device, provider, maximum):
    link = device.connect(properties=[(Property.RECEIVE_MAXIMUM, maximum)])
    token = link.register_and_receive(provider)
    streams = [provider.send(token, {"n": number}) for number in range(40)]
    numbers, unacknowledged = [], []
    while len(numbers) < 40:
        try:
            found = link.expect(Kind.PUBLISH, timeout=None if len(unacknowledged) < maximum else 0.05)
        except Silence:
            assert len(unacknowledged) == maximum
            link.acknowledge(*unacknowledged)
            unacknowledged.clear()
            continue
        numbers.append(found.payload)
        unacknowledged.append(found)
        assert len(unacknowledged) <= maximum
    assert numbers == [b'{"n":%d}' % number for number in range(40)]
    assert {provider.answer(stream).status for stream in streams} == {200}


def test_the_newest_wins_past_the_window_and_the_queue(device, provider):
    link = device.stay(properties=[(Property.RECEIVE_MAXIMUM, 1)])
    token = link.register()
    count = 600
    # Far more than are kept for one connection; none is acknowledged before the last has been accepted.
    streams = []
    for number in range(count):
        provider.pump(lambda: provider.h2.open_outbound_streams < provider.concurrency, what="room for a stream")
        streams.append(provider.send(token, {"n": number}))
    assert {provider.answer(stream).status for stream in streams} == {200}
    numbers = []
    while not numbers or numbers[-1] < count - 1:
        payload = link.notification().payload
        numbers.append(int(payload.removeprefix(b'{"n":').removesuffix(b"}")))
    assert numbers == sorted(set(numbers))
    assert len(numbers) < count
    link.quiet()
    link.leave()
    device.stay().quiet()


def test_the_maximum_packet_size_is_obeyed_and_journaled(shared, device, provider):
    # `read` refuses any packet that is larger.
    link = device.connect(properties=[(Property.MAXIMUM_PACKET_SIZE, 500)])
    token, mail = link.register(TOPIC, MAIL)
    large = provider.push(token, {"aps": {"alert": "x" * 500}})
    assert large.status == 200
    assert provider.push(mail, HELLO, topic=MAIL).status == 200
    assert link.notification(MAIL).payload == HELLO
    journal(shared, large, "discarded")


def test_a_too_large_notification_is_not_tried_again(device, provider):
    link = device.connect(properties=[(Property.MAXIMUM_PACKET_SIZE, 500)], expiry=LONG)
    token = link.register()
    link.leave()
    assert provider.push(token, {"aps": {"alert": "x" * 500}}).status == 200
    link = device.connect(clean=False, expiry=LONG, properties=[(Property.MAXIMUM_PACKET_SIZE, 500)])
    link.quiet()
    link.leave()
    device.stay().quiet()
