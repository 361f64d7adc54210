"""The fields of a request and their effects: sizes, push types, expirations, priorities, identifiers."""

import json
import pathlib
import time

import pytest

from parties import LOWER_UUID, advance, assert_accepted, assert_refused, new_id
from provider import HELLO, Provider, away_device, listening_device
from service import TOPIC, eventually, herald

PAYLOADS = pathlib.Path(__file__).parent.parent / "Payloads"
THIRTY_DAYS = 30 * 86400
SUFFIXES = {
    "alert": "", "background": "", "mdm": "", "complication": ".complication", "controls": ".push-type.controls",
    "fileprovider": ".pushkit.fileprovider", "liveactivity": ".push-type.liveactivity", "location": ".location-query",
    "pushtotalk": ".voip-ptt", "voip": ".voip", "widgets": ".push-type.widgets",
}
#: Each app with the suffix of a kind, once.
TOPICS = list(dict.fromkeys(TOPIC + suffix for suffix in SUFFIXES.values()))


@pytest.fixture(scope="module")
def device(shared):
    """A device that is connected and has an app of every kind."""
    with listening_device(shared, *TOPICS) as device:
        yield device


@pytest.fixture
def provider(parties):
    with parties.provider("key") as provider:
        yield provider


def payload_of(size):
    """A payload of so many bytes."""
    frame = b'{"aps":{"alert":"%s"}}'
    return frame % (b"x" * (size - len(frame) + 2))


def received(device, id):
    """The message that the device received for a notification; earlier messages are skipped."""
    while True:
        message = device.next()
        if message.id == id.lower():
            return message


def deliver(provider, device, payload=HELLO, **options):
    """Pushes to a connected device and returns what it received."""
    id = new_id()
    topic = options.get("topic", TOPIC)
    assert_accepted(provider.push(device.tokens[topic], payload, id=id, **options), id)
    return received(device, id)


class TestSizes:
    @pytest.mark.parametrize("push_type", SUFFIXES)
    def test_the_longest_payload_arrives_and_one_byte_more_is_refused(self, provider, device, push_type):
        topic = TOPIC + SUFFIXES[push_type]
        limit = 5120 if push_type == "voip" else 4096
        options = {"topic": topic, "push_type": push_type, "priority": 5}
        assert deliver(provider, device, payload_of(limit), **options).payload == payload_of(limit)
        refused = provider.push(device.tokens[topic], payload_of(limit + 1), **options)
        assert_refused(refused, 413, "PayloadTooLarge")

    @pytest.mark.parametrize("size", [5121, 16384, 60_000])
    def test_a_far_too_large_body_is_refused_without_a_reset(self, provider, device, size):
        answer = provider.push(device.token, payload_of(size))
        assert_refused(answer, 413, "PayloadTooLarge")
        assert answer.reset is None
        assert_accepted(provider.push(device.token))

    def test_an_endless_body_is_reset_and_the_connection_stays(self, provider, device):
        answer = provider.push(device.token, payload_of(3_000_000))
        assert (answer.status, answer.reason) == (413, "PayloadTooLarge")
        assert_accepted(provider.push(device.token))

    def test_a_payload_in_many_frames_is_joined(self, provider, device):
        id = new_id()
        stream = provider.send(device.token, None, id=id, end=False)
        body = payload_of(500)
        for position in range(0, 500, 7):
            provider.send_body(stream, body[position : position + 7], end=False)
        provider.send_body(stream, b"")
        assert_accepted(provider.answer(stream), id)
        assert received(device, id).payload == body


class TestPayloads:
    @pytest.mark.parametrize(
        "payload",
        [
            b"{}",
            b' \t\r\n{ "aps" : { } }\n',
            '{"aps":{"alert":"Grüße 👋 \\ud83d\\udc4b"}}'.encode(),
            b'{"aps":{"alert":"x"},"a":[1,-0.5e3,true,false,null,"\\u0000"]}',
            b'{"aps":1,"aps":2}',
            b'{"a":' * 600 + b"1" + b"}" * 600,
            b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}",
        ],
    )
    def test_a_json_object_arrives_byte_for_byte(self, provider, device, payload):
        assert deliver(provider, device, payload).payload == payload

    NOT_OBJECTS = [
        b"[]", b'"text"', b"1", b"null", b"true", b" ", b"{", b"}", b"{}x", b"{}{}", b'{"a":1,}', b"{'a':1}", b'{"a":01}',
        b'{"a":NaN}', b'{"a":"\x00"}', b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b'\xef\xbb\xbf{"a":1}', b'{"a"}',
        '{"a":1}'.encode("utf-16"), b"\x00\x01\x02", b"aps=hello",
    ]

    @pytest.mark.parametrize("payload", NOT_OBJECTS)
    def test_a_payload_without_a_json_object_is_refused(self, provider, device, payload):
        assert_refused(provider.push(device.token, payload), 400, "BadPayload")

    def test_a_payload_without_aps_is_accepted_and_shows_nothing(self, provider, device):
        assert deliver(provider, device, b'{"x":1}').payload == b'{"x":1}'
        check = herald("check", "-", "--json", input='{"x":1}')
        report = json.loads(check.stdout)
        assert "aps is missing" in [found["message"] for found in report["findings"]]
        assert not any(view["shown"] for view in report["presentations"])

    def test_silent_payloads_are_background_notifications(self, parties, provider):
        vectors = json.loads((PAYLOADS / "silent.json").read_text())
        device = away_device(parties.service)
        kinds = {}
        for vector in vectors:
            id = new_id()
            assert_accepted(provider.push(device.token, vector["payload"].encode(), id=id), id)
            kinds[id.lower()] = vector
        lines = parties.service.journal("--device", device.id, "--state", "received", "--limit", "500")
        found = {line["id"].lower(): line["type"] for line in lines}
        for id, vector in kinds.items():
            assert (found[id] == "background") == vector["silent"], vector

    def test_a_setting_accepts_any_payload_and_the_journal_records_it(self, fresh):
        service = fresh("--accept-non-json").start()
        key = service.provider_key()
        with listening_device(service) as device, Provider(service, key=key) as provider:
            ids = [new_id() for _ in self.NOT_OBJECTS]
            for id, payload in zip(ids, self.NOT_OBJECTS, strict=True):
                assert_accepted(provider.push(device.token, payload, id=id), id)
            assert_refused(provider.push(device.token, b""), 400, "PayloadEmpty")
            assert_refused(provider.push(device.token, b"x" * 4097), 413, "PayloadTooLarge")
            deliver(provider, device)
            assert len(device.messages) == 1
            for id in ids:
                assert "undeliverable" in json.dumps(service.journal(id))


class TestPushTypes:
    @pytest.mark.parametrize("push_type", SUFFIXES)
    def test_each_push_type_arrives_under_its_topic(self, provider, device, push_type):
        topic = TOPIC + SUFFIXES[push_type]
        message = deliver(provider, device, topic=topic, push_type=push_type, priority=5)
        assert message.topic == f"apps/{topic}"
        assert message.property("apns-push-type") == push_type
        assert message.json == HELLO

    @pytest.mark.parametrize("push_type", [kind for kind, suffix in SUFFIXES.items() if suffix])
    def test_a_push_type_with_a_suffix_needs_the_suffixed_topic(self, provider, device, push_type):
        answer = provider.push(device.token, push_type=push_type)
        assert_refused(answer, 400, "TopicDisallowed")

    def test_the_push_type_header_is_optional(self, provider, device):
        assert deliver(provider, device).property("apns-push-type") == "alert"

    def test_each_topic_has_a_token_of_its_own(self, device):
        assert len(set(device.tokens.values())) == len(TOPICS)


class TestPriorities:
    @pytest.mark.parametrize("priority", [10, 5, 1])
    def test_a_priority_reaches_the_device(self, provider, device, priority):
        assert deliver(provider, device, priority=priority).property("apns-priority") == str(priority)

    def test_the_default_priority_is_ten(self, provider, device):
        assert deliver(provider, device).property("apns-priority") == "10"

    def test_a_background_notification_with_priority_ten_is_refused(self, shared, provider):
        background = {"payload": {"aps": {"content-available": 1}}, "push_type": "background"}
        # A device of its own: more than three of the kind would wait.
        with listening_device(shared) as device:
            assert_refused(provider.push(device.token, **background, priority=10), 400, "BadPriority")
            for priority in (5, 1):
                message = deliver(provider, device, **background, priority=priority)
                assert message.property("apns-priority") == str(priority)
            # Many clients say nothing, and are not held to the default.
            assert deliver(provider, device, **background).property("apns-priority") == "5"


class TestExpiration:
    def test_a_connected_device_gets_a_notification_with_any_expiration(self, provider, device):
        now = int(time.time())
        kept = {None: THIRTY_DAYS, now + 3600: 3600, now + 365 * 86400: THIRTY_DAYS, 253402300799: THIRTY_DAYS}
        for expiration in (0, 1, 300, now - 1, *kept):
            message = deliver(provider, device, expiration=expiration)
            longest = kept.get(expiration, 0)
            # An unstored message has no expiry; for others it is the remaining time.
            assert longest - 300 <= message.expiry <= longest, expiration

    @pytest.mark.parametrize("offset", [None, 3600, 365 * 86400])
    def test_an_unexpired_notification_waits_for_an_absent_device(self, parties, provider, offset):
        device = away_device(parties.service)
        expiration = None if offset is None else int(time.time()) + offset
        id = new_id()
        assert_accepted(provider.push(device.token, expiration=expiration, id=id), id)
        with device.start():
            message = received(device, id)
            longest = min(offset or THIRTY_DAYS, THIRTY_DAYS)
            assert longest - 300 <= message.expiry <= longest

    def test_an_expired_notification_is_not_stored_and_replaces_nothing(self, parties, provider):
        device = away_device(parties.service)
        stored = new_id()
        assert_accepted(provider.push(device.token, id=stored), stored)
        for expiration in (0, 1, 300, int(time.time()) - 1):
            assert_accepted(provider.push(device.token, expiration=expiration, collapse_id="same"))
        with device.start():
            received(device, stored)
            deliver(provider, device)
        assert len(device.messages) == 2

    @pytest.mark.parametrize("offset", [60, None], ids=["after its time", "after thirty days"])
    def test_a_notification_that_expires_in_storage_is_not_delivered(self, fresh, offset):
        service = fresh("--clock", "adjustable").start()
        device = away_device(service)
        id = new_id()
        with Provider(service, service.provider_certificate()) as provider:
            expiration = None if offset is None else int(time.time()) + offset
            assert_accepted(provider.push(device.token, id=id, expiration=expiration), id)
            advance(service, (offset or THIRTY_DAYS) + 5)
            with device.start():
                deliver(provider, device)
        assert len(device.messages) == 1
        assert "expired" in json.dumps(service.journal(id))


class TestCollapseIdentifiers:
    @pytest.mark.parametrize("value", ["x", "x" * 64, "ü" * 32, "👋" * 16, "a b"], ids=ascii)
    def test_up_to_64_bytes_reach_the_device(self, provider, device, value):
        message = deliver(provider, device, collapse_id=value)
        assert f"apns-collapse-id:{value}" in message.properties

    @pytest.mark.parametrize("value", ["x" * 65, "ü" * 33, "ü" * 32 + "x", "👋" * 17, "x" * 5000], ids=ascii)
    def test_more_than_64_bytes_are_refused(self, provider, device, value):
        assert_refused(provider.push(device.token, collapse_id=value), 400, "BadCollapseId")

    @pytest.mark.parametrize(
        "value", ["a\tb", "a\x01", "a\x7f", "\x80", "a\x85b", "\x9f", "\ufdd0", "\ufdef", "\ufffe", "x\uffff", "\U0001ffff", "\U0010fffe"],
        ids=ascii,
    )
    def test_what_no_device_need_accept_is_refused(self, provider, device, value):
        """Characters for which MQTT 5 §1.5.4 lets a receiver drop the packet; a header field may have a tab."""
        answer = provider.push(device.token, collapse_id=value, explain=1)
        assert (answer.status, answer.reason) == (400, "BadCollapseId")
        assert answer.json["explanation"].startswith("apns-collapse-id is 1 to 64 bytes of printable text")

    def test_no_collapse_identifier_is_invented(self, provider, device):
        assert "apns-collapse-id" not in deliver(provider, device).properties

    def test_a_connected_device_gets_all_notifications_of_one_identifier(self, provider, device):
        first, second = (deliver(provider, device, {"n": n}, collapse_id="same").json for n in (1, 2))
        assert (first, second) == ({"n": 1}, {"n": 2})


class TestIdentifiers:
    @pytest.mark.parametrize(
        "id",
        [
            "123e4567-e89b-12d3-a456-4266554400a0", "123E4567-E89B-12D3-A456-4266554400B1",
            "123e4567-E89B-12d3-A456-4266554400c2", "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
        ],
    )
    def test_an_identifier_comes_back_as_it_was_sent(self, provider, device, id):
        assert_accepted(provider.push(device.token, id=id), id)
        assert_refused(provider.push("00", id=id), 400, "BadDeviceToken", id)

    def test_a_generated_identifier_is_new_and_in_lower_case(self, provider, device):
        ids = [provider.push(device.token).id for _ in range(5)] + [provider.push("00").id]
        assert all(LOWER_UUID.fullmatch(id) for id in ids)
        assert len(set(ids)) == 6

    def test_an_identifier_reaches_the_device_and_the_journal(self, parties, provider, device):
        answer = provider.push(device.token)
        message = received(device, answer.id)
        assert message.id == answer.id.lower()
        assert eventually(lambda: "delivered" in json.dumps(parties.service.journal(answer.id)))

    def test_production_answers_have_no_unique_identifier(self, provider, device):
        assert provider.push(device.token).unique_id is None

    def test_sandbox_successes_have_a_unique_identifier(self, fresh):
        service = fresh("--environment", "sandbox").start()
        self.check_unique_identifiers(service)

    def test_a_setting_adds_the_unique_identifier_always(self, fresh):
        service = fresh("--unique-id", "always").start()
        self.check_unique_identifiers(service)

    @staticmethod
    def check_unique_identifiers(service):
        device = away_device(service)
        id = new_id()
        with Provider(service, service.provider_certificate()) as provider:
            answers = [provider.push(device.token, id=id), provider.push(device.token, id=id)]
            assert provider.push("00").unique_id is None
        for answer in answers:
            assert_accepted(answer, id)
            assert LOWER_UUID.fullmatch(answer.unique_id)
        assert answers[0].unique_id != answers[1].unique_id
        # The provider repeated its identifier; the service's tells the two apart.
        assert "replaced" in json.dumps(service.journal(answers[0].unique_id))
        assert "replaced" not in json.dumps(service.journal(answers[1].unique_id))
