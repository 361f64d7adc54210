"""Making, reading, listing and deleting channels ("Sending channel management requests to APNs"), with curl and h2."""

import base64
import json
import subprocess

import pytest

from channels import ATTRIBUTES, assert_refused, assert_request_id, call, create, delete, listing, read
from parties import OTHER, new_id
from provider import Provider, provider_token
from service import PATIENCE, TOPIC

PATH = f"/1/apps/{TOPIC}/channels"
UNKNOWN = base64.b64encode(bytes(16)).decode()


@pytest.fixture
def provider(parties):
    with parties.provider("key") as provider:
        yield provider


def curl(service, *options, path=PATH):
    """One request by curl: (status, fields of the answer, body)."""
    result = subprocess.run(
        [
            "curl", "--silent", "--show-error", "--http2", "--max-time", str(PATIENCE), "--cacert", str(service.ca),
            "--write-out", "\n%{json}\n%{header_json}", *map(str, options),
            f"https://127.0.0.1:{service.listeners['api']}{path}",
        ],
        capture_output=True, text=True, timeout=2 * PATIENCE, check=True,
    )
    body, rest = result.stdout.split("\n", 1)
    facts, fields = rest.split("\n", 1)
    return json.loads(facts)["response_code"], {k: v[0] for k, v in json.loads(fields).items()}, body


class TestCurl:
    """The requests as Apple's pages show them."""

    def test_a_channel_is_created_read_and_deleted(self, shared, parties):
        credential = ("--header", f"authorization: bearer {provider_token(parties.key, der=True)}")
        id = new_id()
        status, fields, body = curl(
            shared, *credential, "--header", f"apns-request-id: {id}", "--data", json.dumps(ATTRIBUTES)
        )
        assert (status, body, fields["apns-request-id"]) == (201, "", id)
        channel = fields["apns-channel-id"]
        assert len(base64.b64decode(channel, validate=True)) == 16
        named = (*credential, "--header", f"apns-channel-id: {channel}")
        status, fields, body = curl(shared, *named)
        assert (status, json.loads(body)) == (200, ATTRIBUTES)
        assert fields["content-type"] == "application/json" and fields["apns-request-id"]
        status, _, body = curl(shared, *credential, path=f"/1/apps/{TOPIC}/all-channels")
        assert status == 200 and channel in json.loads(body)["channels"]
        status, fields, body = curl(shared, *named, "--request", "DELETE")
        assert (status, body) == (204, "") and fields["apns-request-id"]
        status, _, body = curl(shared, *named)
        assert (status, body) == (400, '{"reason":"ChannelNotRegistered"}')

    def test_a_certificate_is_accepted(self, shared, parties):
        status, fields, _ = curl(shared, "--cert", parties.certificate, "--data", json.dumps(ATTRIBUTES))
        assert status == 201
        named = ("--cert", parties.certificate, "--header", f"apns-channel-id: {fields['apns-channel-id']}")
        assert curl(shared, *named, "--request", "DELETE")[0] == 204


class TestOperations:
    @pytest.mark.parametrize("policy", [0, 1])
    def test_the_storage_policy_is_kept(self, provider, policy):
        channel = create(provider, policy)
        answer = read(provider, channel)
        assert answer.body == b'{"message-storage-policy":%d,"push-type":"LiveActivity"}' % policy
        assert_request_id(answer)

    def test_a_channel_belongs_to_one_app_in_one_environment(self, parties, provider):
        channel = create(provider)
        assert_refused(read(provider, channel, OTHER), 400, "ChannelNotRegistered")
        assert_refused(delete(provider, channel, OTHER), 400, "ChannelNotRegistered")
        with parties.provider("key", name="sandbox.localhost") as sandbox:
            assert_refused(read(sandbox, channel), 400, "ChannelNotRegistered")
            assert channel not in listing(sandbox)
        assert channel in listing(provider) and channel not in listing(provider, OTHER)

    def test_an_app_without_channels_has_an_empty_list(self, provider):
        answer = call(provider, "GET", "/1/apps/com.example.none/all-channels")
        assert (answer.status, answer.body) == (200, b'{"channels":[]}')
        assert_request_id(answer)

    def test_capitals_in_a_bundle_identifier(self, provider):
        """APNs once answered TopicMismatch here."""
        channel = create(provider, bundle="com.Example.Capitals")
        assert listing(provider, "com.Example.Capitals") == [channel]

    def test_a_request_identifier_comes_back_as_given(self, provider):
        for id in (new_id(), new_id().upper()):
            answer = call(provider, "POST", PATH, ATTRIBUTES, apns_request_id=id)
            assert answer.status == 201
            assert_request_id(answer, id)
            assert_refused(read(provider, UNKNOWN, apns_request_id=id), 400, "ChannelNotRegistered", id)

    @pytest.mark.parametrize("spelling", [str.lower, str.upper, str.title])
    def test_the_push_type_ignores_case(self, provider, spelling):
        body = {**ATTRIBUTES, "push-type": spelling("liveactivity")}
        assert call(provider, "POST", PATH, body).status == 201

    def test_members_in_any_order_and_with_space(self, provider):
        body = b'\n{ "push-type" : "LiveActivity",\t"message-storage-policy" : 0 }\n'
        assert call(provider, "POST", PATH, body).status == 201

    def test_a_body_is_optional_where_none_is_needed(self, provider):
        """node-apn writes none for `{}`; others write `{}`, or their own."""
        channel = create(provider)
        for body in (None, b"", b"{}", b"nonsense"):
            assert call(provider, "GET", PATH, body, apns_channel_id=channel).status == 200
            assert call(provider, "GET", f"/1/apps/{TOPIC}/all-channels", body).status == 200
        assert call(provider, "DELETE", PATH, b"{}", apns_channel_id=channel).status == 204

    def test_the_identifier_may_be_in_the_path(self, provider):
        """As APNSwift wrote it before June 2026."""
        channel = create(provider)
        for level in (channel.replace("/", "%2F"), channel.replace("/", "_").replace("+", "-")):
            assert call(provider, "GET", f"{PATH}/{level}").json == ATTRIBUTES
        assert call(provider, "DELETE", f"{PATH}/{level}").status == 204
        assert_refused(call(provider, "GET", f"{PATH}/{level}"), 400, "ChannelNotRegistered")

    def test_a_long_list_is_complete(self, fresh):
        service = fresh().start()
        key = service.provider_key()
        with Provider(service, key=key) as provider:
            provider.answer(provider.send(None, ATTRIBUTES, path=PATH, topic=None))
            streams = [provider.send(None, ATTRIBUTES, path=PATH, topic=None) for _ in range(699)]
            made = {provider.answer(stream).header("apns-channel-id") for stream in streams}
            channels = listing(provider)
            assert len(channels) == 700 and made < set(channels)
        service.kill()
        service.start()
        with Provider(service, key=key) as provider:
            assert listing(provider) == channels


class TestLimits:
    def test_an_app_has_a_limit(self, fresh):
        service = fresh("--channel-limit", "2").start()
        key = service.provider_key()
        with Provider(service, key=key) as provider:
            channels = [create(provider) for _ in range(2)]
            answer = call(provider, "POST", PATH, ATTRIBUTES)
            assert_refused(answer, 400, "CannotCreateChannelConfig")
            create(provider, bundle=OTHER)
            with Provider(service, key=key, name="sandbox.localhost") as sandbox:
                create(sandbox)
            assert delete(provider, channels[0]).status == 204
            create(provider)

    def test_apps_without_the_capability(self, fresh):
        service = fresh("--broadcast-apps", OTHER).start()
        with Provider(service, key=service.provider_key()) as provider:
            create(provider, bundle=OTHER)
            answer = call(provider, "POST", PATH, ATTRIBUTES, explain=1)
            assert (answer.status, answer.reason) == (400, "FeatureNotEnabled")
            assert "broadcast-apps" in answer.json["explanation"]
            for method, path in [("GET", PATH), ("DELETE", PATH), ("GET", f"/1/apps/{TOPIC}/all-channels")]:
                assert_refused(call(provider, method, path, apns_channel_id=UNKNOWN), 400, "FeatureNotEnabled")
            path = f"/4/broadcasts/apps/{TOPIC}"
            assert_refused(call(provider, "POST", path, {}, apns_channel_id=UNKNOWN), 400, "FeatureNotEnabled")

    def test_no_app_at_all(self, fresh):
        service = fresh("--broadcast-apps", "none").start()
        with Provider(service, key=service.provider_key()) as provider:
            assert_refused(call(provider, "POST", PATH, ATTRIBUTES), 400, "FeatureNotEnabled")


class TestRefusals:
    """One for each row of the table of errors that management has."""

    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    @pytest.mark.parametrize(
        "channel, reason",
        [
            (None, "MissingChannelId"), ("no base64!", "BadChannelId"), ("A" * 65, "BadChannelId"), ("", "BadChannelId"),
            (UNKNOWN, "ChannelNotRegistered"), ("dHN0LXNyY2gtY2hubA==", "ChannelNotRegistered"),
        ],
    )
    def test_an_invalid_or_unknown_channel(self, provider, method, channel, reason):
        assert_refused(call(provider, method, PATH, apns_channel_id=channel), 400, reason)

    @pytest.mark.parametrize(
        "body", [
            b"{", b"nonsense", b"[]", b"1", b'"x"', b"\xff", b'{"message-storage-policy":1,}', b'{"message-storage-policy":}',
            b'{"push-type":"LiveActivity","push-type":"LiveActivity","message-storage-policy":1}',
            b'{"push-type":"LiveActivity","push\\u002dtype":"LiveActivity","message-storage-policy":1}',
            b'{"message-storage-policy":1,"push-type":"LiveActivity"} x', b" " * 6000,
        ],
    )
    def test_an_unreadable_body(self, provider, body):
        assert_refused(call(provider, "POST", PATH, body), 400, "BadRequestPayload")

    @pytest.mark.parametrize(
        "body", [
            {}, {"push-type": "LiveActivity"}, {"message-storage-policy": 1}, {**ATTRIBUTES, "more": 1},
            {**ATTRIBUTES, "message-storage-policy": 2}, {**ATTRIBUTES, "message-storage-policy": -1},
            {**ATTRIBUTES, "message-storage-policy": "1"}, {**ATTRIBUTES, "message-storage-policy": 0.5},
            {**ATTRIBUTES, "message-storage-policy": None}, {**ATTRIBUTES, "message-storage-policy": 1e99},
            {**ATTRIBUTES, "message-storage-policy": True}, {**ATTRIBUTES, "push-type": "alert"},
            {**ATTRIBUTES, "push-type": 1}, {**ATTRIBUTES, "push-type": {"push-type": "LiveActivity"}},
            {"Message-Storage-Policy": 1, "push-type": "LiveActivity"},
        ],
    )
    def test_invalid_attributes(self, provider, body):
        assert_refused(call(provider, "POST", PATH, body), 400, "BadRequestParams")

    @pytest.mark.parametrize("body", [None, b""])
    def test_no_body(self, provider, body):
        assert_refused(call(provider, "POST", PATH, body), 400, "PayloadEmpty")

    def test_an_invalid_request_identifier(self, provider):
        assert_refused(call(provider, "POST", PATH, ATTRIBUTES, apns_request_id="1"), 400, "BadMessageId")

    def test_a_field_twice(self, provider):
        answer = call(provider, "GET", PATH, apns_channel_id=UNKNOWN, headers=[("apns-channel-id", UNKNOWN)])
        assert_refused(answer, 400, "DuplicateHeaders")

    @pytest.mark.parametrize("suffix", [".voip", ".push-type.liveactivity", ".complication"])
    def test_a_topic_with_a_suffix(self, provider, suffix):
        answer = call(provider, "POST", f"/1/apps/{TOPIC}{suffix}/channels", ATTRIBUTES)
        assert_refused(answer, 400, "TopicDisallowed")

    @pytest.mark.parametrize(
        "path", [
            "/1/", "/1/apps", "/1/apps/", f"/1/apps/{TOPIC}", f"/1/apps/{TOPIC}/", f"/1/apps/{TOPIC}/channel",
            f"/1/apps/{TOPIC}/channels/", f"/1/apps/{TOPIC}/channels/a/b", f"/1/apps/{TOPIC}/all-channels/",
            "/1/apps//channels", "/1/apps/a%20b/channels", "/1/apps/.x/channels", f"/2/apps/{TOPIC}/channels",
            f"/1/app/{TOPIC}/channels", f"/1/apps/{'x' * 201}/channels", f"{PATH}?x=1", "/1/apps/\u00e9/channels",
        ],
    )
    def test_another_path(self, provider, path):
        answer = call(provider, "POST", path, ATTRIBUTES)
        assert (answer.status, answer.reason) == (404, "BadPath")

    @pytest.mark.parametrize(
        "method, path",
        [
            ("PUT", PATH), ("PATCH", PATH), ("POST", f"{PATH}/{UNKNOWN.replace('/', '_')}"),
            ("POST", f"/1/apps/{TOPIC}/all-channels"), ("DELETE", f"/1/apps/{TOPIC}/all-channels"), ("PUT", "/1/apps/x"),
        ],
    )
    def test_another_method(self, provider, method, path):
        assert_refused(call(provider, method, path, ATTRIBUTES), 405, "MethodNotAllowed")

    def test_an_explanation(self, provider):
        answer = call(provider, "POST", PATH, {}, explain=1)
        assert answer.reason == "BadRequestParams" and "message-storage-policy" in answer.json["explanation"]


class TestTrust:
    """Credentials are checked before the rest of the request."""

    def refused(self, service, status, reason, **options):
        with Provider(service, **options) as provider:
            for method, path, body in [("POST", PATH, b"x"), ("GET", PATH, None), ("DELETE", PATH, None)]:
                assert_refused(call(provider, method, path, body, apns_request_id="x"), status, reason)

    def test_no_credentials(self, shared):
        self.refused(shared, 403, "MissingProviderToken")

    def test_an_invalid_token(self, shared, parties):
        with Provider(shared) as provider:
            answer = call(provider, "GET", PATH, authorization="bearer x.y.z")
            assert_refused(answer, 403, "InvalidProviderToken")
            old = provider_token(parties.key, age=3700)
            answer = call(provider, "GET", PATH, authorization=f"bearer {old}")
            assert_refused(answer, 403, "ExpiredProviderToken")

    def test_a_key_of_the_other_environment(self, shared, parties):
        self.refused(shared, 403, "BadEnvironmentKeyInToken", key=parties.key_for_sandbox)

    def test_a_certificate_of_the_other_environment(self, shared):
        certificate = shared.provider_certificate(TOPIC, environment="sandbox")
        with Provider(shared, certificate=certificate) as provider:
            assert provider.wait_for_goaway().additional_data == b'{"reason":"BadCertificateEnvironment"}'

    def test_credentials_of_other_apps(self, shared, parties):
        for options in ({"key": parties.key_for_other}, {"key": parties.key_of_strangers}):
            with Provider(shared, **options) as provider:
                assert_refused(call(provider, "POST", PATH, ATTRIBUTES), 403, "TopicMismatch")
        with Provider(shared, certificate=parties.certificate) as provider:
            answer = call(provider, "POST", f"/1/apps/{OTHER}/channels", ATTRIBUTES)
            assert_refused(answer, 403, "TopicMismatch")
            create(provider)

    def test_a_token_that_changes_too_often(self, shared, parties):
        with Provider(shared) as provider:
            for age, status in [(3, 200), (2, 200), (1, 429)]:
                token = provider_token(parties.key, age=age)
                answer = call(provider, "GET", f"/1/apps/{TOPIC}/all-channels", authorization=f"bearer {token}")
                assert answer.status == status
            assert_refused(answer, 429, "TooManyProviderTokenUpdates")

