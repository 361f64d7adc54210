"""Sending broadcasts ("Sending broadcast push notification requests to APNs"): fields, errors, their order, storage."""

import base64

import pytest

from channels import (
    FIELDS, LIVE, assert_accepted, assert_refused, call, compact, create, delete, filter_of, publish, send, soon,
)
from mqtt_packets import Property
from parties import advance, new_id
from provider import Provider
from service import TOPIC, eventually

PATH = f"/4/broadcasts/apps/{TOPIC}"
UNKNOWN = base64.b64encode(bytes(16)).decode()


@pytest.fixture(scope="module")
def provider(shared, parties):
    with parties.provider("key") as provider:
        yield provider


@pytest.fixture(scope="module")
def channel(provider):
    return create(provider, 1)


@pytest.fixture(scope="module")
def unstored(provider):
    return create(provider, 0)


class TestAccepted:
    @pytest.mark.parametrize("priority", [10, 5, 1])
    @pytest.mark.parametrize("push_type", ["liveactivity", "LiveActivity", "Liveactivity"])
    def test_a_broadcast(self, provider, channel, priority, push_type):
        assert_accepted(send(provider, channel, priority=priority, push_type=push_type))

    def test_a_certificate_is_accepted(self, parties, channel):
        with parties.provider("certificate") as provider:
            assert_accepted(send(provider, channel))

    def test_the_providers_identifier_is_returned(self, provider, channel):
        id = new_id()
        assert_accepted(send(provider, channel, apns_request_id=id), id)

    @pytest.mark.parametrize("expiration", [0, 1, soon(), soon(10**9)], ids=["zero", "1970", "soon", "far-away"])
    def test_a_time(self, provider, channel, expiration):
        assert_accepted(send(provider, channel, expiration=expiration))

    def test_the_longest_payload(self, provider, channel, unstored):
        payload = b'{"aps":"%s"}' % (b"x" * (5120 - 10))
        assert len(payload) == 5120
        assert_accepted(send(provider, channel, payload))
        assert_accepted(send(provider, unstored, payload))

    def test_a_broadcast_without_storage_needs_no_time(self, provider, unstored):
        assert_accepted(send(provider, unstored))

    def test_an_explanation(self, provider, channel):
        answer = send(provider, channel, explain=1, expiration=soon())
        assert answer.header("herald-explanation") == "stored"

    def test_a_burst_of_broadcasts_is_accepted_or_rate_limited(self, provider, unstored):
        """However fast they come: each is accepted, or refused with a time to come again."""
        path = dict(path=PATH, topic=None, apns_channel_id=unstored, **FIELDS)
        streams = [provider.send(None, LIVE, **path) for _ in range(500)]
        answers = [provider.answer(stream) for stream in streams]
        assert {answer.status for answer in answers} <= {200, 429}
        for answer in answers:
            if answer.status == 429:
                assert answer.reason == "TooManyRequests" and answer.header("retry-after")


ROWS = [
    ({"apns_channel_id": None}, "MissingChannelId"),
    ({"apns_channel_id": "no base64!"}, "BadChannelId"),
    ({"apns_channel_id": "A" * 65}, "BadChannelId"),
    ({"apns_channel_id": UNKNOWN}, "ChannelNotRegistered"),
    ({"push_type": None}, "MissingPushType"),
    ({"push_type": "alert"}, "InvalidPushType"),
    ({"push_type": "background"}, "InvalidPushType"),
    ({"push_type": ""}, "InvalidPushType"),
    ({"expiration": None}, "BadExpirationDate"),
    ({"expiration": "soon"}, "BadExpirationDate"),
    ({"expiration": -1}, "BadExpirationDate"),
    ({"expiration": 1.5}, "BadExpirationDate"),
    ({"priority": None}, "BadPriority"),
    ({"priority": 7}, "BadPriority"),
    ({"priority": "010"}, "BadPriority"),
    ({"apns_request_id": "1"}, "BadMessageId"),
    ({"payload": None}, "PayloadEmpty"),
    ({"payload": b""}, "PayloadEmpty"),
    ({"payload": b"[]"}, "BadPayload"),
    ({"payload": b"{"}, "BadPayload"),
]


class TestRefusals:
    @pytest.mark.parametrize("change, reason", ROWS, ids=str)
    def test_a_row(self, provider, channel, change, reason):
        payload = change.get("payload", LIVE)
        fields = {"apns_channel_id": channel, **FIELDS, **{k: v for k, v in change.items() if k != "payload"}}
        assert_refused(call(provider, "POST", PATH, payload, **fields), 400, reason)

    @pytest.mark.parametrize("expiration", [1, soon()], ids=["1970", "soon"])
    def test_an_expiration_without_storage(self, provider, unstored, expiration):
        assert_refused(send(provider, unstored, expiration=expiration), 400, "BadExpirationDate")

    def test_a_too_long_payload(self, provider, channel):
        payload = b'{"aps":"%s"}' % (b"x" * 5111)
        assert_refused(send(provider, channel, payload), 413, "PayloadTooLarge")

    @pytest.mark.parametrize("suffix", [".voip", ".push-type.liveactivity"])
    def test_a_topic_with_a_suffix(self, provider, channel, suffix):
        assert_refused(send(provider, channel, bundle=TOPIC + suffix), 400, "TopicDisallowed")

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    def test_another_method(self, provider, channel, method):
        answer = call(provider, method, PATH, apns_channel_id=channel, **FIELDS)
        assert_refused(answer, 405, "MethodNotAllowed")

    @pytest.mark.parametrize("path", ["/4/broadcasts/", f"{PATH}/", f"{PATH}/x", f"/4/broadcasts/{TOPIC}"])
    def test_another_path(self, provider, path):
        assert_refused(call(provider, "POST", path, LIVE), 404, "BadPath")

    def test_a_field_twice(self, provider, channel):
        answer = send(provider, channel, headers=[("apns-priority", "10")])
        assert_refused(answer, 400, "DuplicateHeaders")

    def test_trust(self, shared, parties, channel):
        with Provider(shared) as provider:
            assert_refused(send(provider, channel), 403, "MissingProviderToken")
            assert_refused(send(provider, channel, authorization="bearer x"), 403, "InvalidProviderToken")
        for key in (parties.key_for_other, parties.key_of_strangers):
            with Provider(shared, key=key) as provider:
                assert_refused(send(provider, channel), 403, "TopicMismatch")

    def test_the_first_of_several_faults_is_reported(self, shared, parties, provider, unstored):
        """Each mended in turn, the next one shows."""
        with Provider(shared) as nobody:
            assert_refused(call(nobody, "PUT", PATH + "/", b"x"), 405, "MethodNotAllowed")
            assert_refused(call(nobody, "POST", PATH + "/", b"x"), 404, "BadPath")
            assert_refused(call(nobody, "POST", PATH, apns_request_id="x"), 403, "MissingProviderToken")
        suffixed = f"/4/broadcasts/apps/{TOPIC}.voip"
        assert_refused(call(provider, "POST", suffixed, apns_request_id="x"), 400, "BadMessageId")
        assert_refused(call(provider, "POST", suffixed), 400, "TopicDisallowed")
        faults = [
            ("apns_channel_id", UNKNOWN, "MissingChannelId"), ("push_type", "alert", "MissingPushType"),
            ("push_type", "liveactivity", "InvalidPushType"), ("expiration", 1, "BadExpirationDate"),
            ("priority", 10, "BadPriority"), ("apns_channel_id", unstored, "ChannelNotRegistered"),
            ("expiration", 0, "BadExpirationDate"),
        ]
        fields = {}
        for name, value, reason in faults:
            assert_refused(call(provider, "POST", PATH, **fields), 400, reason)
            fields[name] = value
        assert_refused(call(provider, "POST", PATH, **fields), 400, "PayloadEmpty")
        assert_refused(call(provider, "POST", PATH, b"x" * 5121, **fields), 413, "PayloadTooLarge")
        assert_refused(call(provider, "POST", PATH, b"x", **fields), 400, "BadPayload")
        assert call(provider, "POST", PATH, b"{}", **fields).status == 200


class TestStorage:
    def test_an_accepted_broadcast_survives_a_kill(self, fresh, enroll):
        service = fresh().start()
        key = service.provider_key()
        with Provider(service, key=key) as provider:
            stored, other = create(provider, 1), create(provider, 0)
            for number in range(3):
                publish(provider, stored, {"n": number}, expiration=soon())
            publish(provider, stored, {"n": 3}, expiration=0)
            publish(provider, other, {"n": 4})
        service.kill()
        service.start()
        link = enroll(service).connect()
        assert link.subscribe(filter_of(stored), filter_of(other)).reasons == (1, 1)
        assert link.next(filter_of(stored)).payload == compact({"n": 2})
        link.settled()
        with Provider(service, key=key) as provider:
            publish(provider, stored, {"n": 5}, expiration=soon())
            assert link.next(filter_of(stored)).payload == compact({"n": 5})
            assert delete(provider, stored).status == 204
        service.kill()
        service.start()
        assert enroll(service).connect().subscribe(filter_of(stored)).reasons == (0x87,)

    @pytest.mark.parametrize("asked, lasts", [(600, 600), (30 * 86_400, 8 * 3600)])
    def test_the_newest_is_kept_until_it_expires_and_eight_hours_at_most(self, fresh, enroll, asked, lasts):
        service = fresh("--clock", "adjustable").start()
        with Provider(service, key=service.provider_key()) as provider:
            channel = create(provider)
            publish(provider, channel, {"n": 1}, expiration=soon(asked))
            device = enroll(service)
            advance(service, lasts - 300)
            link = device.connect()
            link.subscribe(filter_of(channel))
            found = link.next(filter_of(channel))
            assert 0 < dict(found.properties)[Property.MESSAGE_EXPIRY] <= 300
            advance(service, 300)
            link = device.connect()
            link.subscribe(filter_of(channel))
            link.settled()

    def test_moving_the_clock_past_the_expiration_removes_it(self, fresh):
        service = fresh("--clock", "adjustable").start()
        with Provider(service, key=service.provider_key()) as provider:
            id = new_id()
            publish(provider, create(provider), {"n": 1}, apns_request_id=id, expiration=soon(600))
            advance(service, 601)
            eventually(lambda: service.journal(id)[-1].get("reason") == "expired", what="the line of its end")

    def test_the_journal_records_a_broadcast(self, shared, provider, enroll):
        channel = create(provider)
        links = [enroll(shared, f"listener-{number}").connect() for number in range(3)]
        for link in links:
            assert link.subscribe(filter_of(channel)).reasons == (1,)
        id = new_id()
        first = publish(provider, channel, {"n": 1}, apns_request_id=id, expiration=soon())
        for link in links:
            link.next(filter_of(channel))
        second = publish(provider, channel, {"n": 2}, expiration=soon())

        def told():
            lines = shared.journal(first)
            return lines if len(lines) == 4 else None

        lines = eventually(told, what="the lines of the broadcast")
        assert {line["id"] for line in lines} == {id}
        assert {(line["topic"], line["device"]) for line in lines} == {(TOPIC, "")}
        states = {line["state"]: line for line in lines}
        assert set(states) == {"received", "stored", "sent to the channel's subscribers", "replaced"}
        assert states["sent to the channel's subscribers"]["devices"] == 3
        assert second and states["replaced"]["replacement"]

    def test_a_setting_accepts_payloads_that_are_not_json(self, fresh, enroll):
        service = fresh("--accept-non-json").start()
        with Provider(service, key=service.provider_key()) as provider:
            channel = create(provider)
            link = enroll(service).connect()
            link.subscribe(filter_of(channel))
            answer = send(provider, channel, b"nonsense", expiration=soon(), explain=1)
            assert answer.status == 200 and "no app could read it" in answer.header("herald-explanation")
            unique = answer.header("apns-unique-id")
            link.settled()
            states = lambda: [f"{line['state']} ({line['reason']})" for line in service.journal(unique) if line.get("reason")]
            eventually(lambda: states() == ["discarded (undeliverable payload)"], what="the journal's line")
