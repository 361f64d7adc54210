"""Every refusal of a single request, and the order of the checks."""

import itertools

import pytest

from parties import OTHER, STRANGERS, assert_accepted, assert_refused, new_id
from provider import HELLO, Provider, provider_token
from service import TOPIC

UNKNOWN_TOKEN = "0f" * 32
KINDS = ("certificate", "key")


class Request:
    """A request that is right in everything, until a fault is put into it."""

    def __init__(self, parties):
        self.parties = parties
        self.id = new_id()
        self.expects_id = True
        self.method = "POST"
        self.path = None
        self.token = parties.token
        self.payload = HELLO
        self.key = parties.key
        self.authorization = None
        #: A key whose token is shown by a request before this one.
        self.key_before = None
        self.fields = {
            "id": self.id, "expiration": 0, "priority": 10, "push_type": "alert", "collapse_id": "c", "topic": TOPIC,
        }
        self.doubled = None

    def send(self, provider):
        fields = {name: value for name, value in self.fields.items() if value is not None}
        fields.setdefault("topic", None)
        headers = [(f"apns-{self.doubled}", fields[self.doubled])] if self.doubled else []
        return provider.push(
            self.token, self.payload, method=self.method, path=self.path, headers=headers, **fields
        )


def fault(part, status, **changes):
    """A fault in one part of the request: what to change, and the status it earns."""

    def apply(request):
        for name, value in changes.items():
            if name in request.fields:
                request.fields[name] = value
            else:
                setattr(request, name, value(request.parties) if callable(value) else value)

    return part, status, apply


def bearer(**options):
    """An `authorization` made with the team's key."""
    return lambda parties: f"bearer {provider_token(parties.key, **options)}"


def stranger(parties):
    """A token that is right in all but its key, which is unknown."""
    path, _, team = parties.key
    return f"bearer {provider_token((path, 'ZZZZZZZZZZ', team))}"


#: In the order of validation: the refusal names the earlier of two faults.
FAULTS = {
    "MethodNotAllowed": fault("method", 405, method="GET"),
    "BadPath": fault("path", 404, path="/3/devices/" + UNKNOWN_TOKEN),
    "DuplicateHeaders": fault("doubled", 400, doubled="expiration"),
    "MissingProviderToken": fault("authorization", 403, authorization=""),
    "InvalidProviderToken": fault("authorization", 403, authorization=stranger),
    "ExpiredProviderToken": fault("authorization", 403, authorization=bearer(age=3700)),
    "BadEnvironmentKeyInToken": fault(
        "authorization", 403, authorization=lambda parties: f"bearer {provider_token(parties.key_for_sandbox)}"
    ),
    "UnrelatedKeyIdInToken": fault("authorization", 403, key_before=lambda parties: parties.key_for_other),
    "MissingDeviceToken": fault("path", 400, path="/3/device/"),
    "BadMessageId": fault("id", 400, id="not-a-uuid", expects_id=False),
    "BadExpirationDate": fault("expiration", 400, expiration="tomorrow"),
    "BadPriority": fault("priority", 400, priority=7),
    "InvalidPushType": fault("push_type", 400, push_type="telegram"),
    "BadCollapseId": fault("collapse_id", 400, collapse_id="x" * 65),
    "MissingTopic": fault("topic", 400, topic=None),
    "BadTopic": fault("topic", 400, topic="com.example chat"),
    "TopicDisallowed": fault("topic", 400, topic=STRANGERS),
    "PayloadEmpty": fault("payload", 400, payload=None),
    "PayloadTooLarge": fault("payload", 413, payload=b'{"aps":{"alert":"%s"}}' % (b"x" * 4096)),
    "BadDeviceToken": fault("path", 400, token=UNKNOWN_TOKEN),
    "DeviceTokenNotForTopic": fault("path", 400, token=lambda parties: parties.other_token),
    "Unregistered": fault("path", 410, token=lambda parties: parties.dead_token),
}
#: Faults that a connection with a certificate cannot have.
OF_TOKENS = {name for name, (part, _, _) in FAULTS.items() if part == "authorization"} | {"MissingTopic"}


def faulty(parties, kind, *names):
    """Sends one request with these faults on a new connection."""
    request = Request(parties)
    for name in names:
        FAULTS[name][2](request)
    if kind == "certificate":
        with parties.provider("certificate") as provider:
            return request, request.send(provider)
    with Provider(parties.service) as provider:
        if request.key_before:
            first = provider.push(
                parties.other_token, topic=OTHER, authorization=f"bearer {provider_token(request.key_before)}"
            )
            assert_accepted(first)
        if request.authorization is None:
            provider.authorization = f"bearer {provider_token(request.key)}"
        else:
            provider.authorization = request.authorization or None
        return request, request.send(provider)


@pytest.mark.parametrize(
    "kind, name",
    [(kind, name) for kind in KINDS for name in FAULTS if kind == "key" or name not in OF_TOKENS],
)
def test_a_fault_is_refused_with_its_status_and_reason(parties, kind, name):
    request, answer = faulty(parties, kind, name)
    assert_refused(answer, FAULTS[name][1], name, request.id if request.expects_id else None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_without_a_fault_is_accepted(parties, kind):
    request, answer = faulty(parties, kind)
    assert_accepted(answer, request.id)


PAIRS = [
    (earlier, later)
    for earlier, later in itertools.combinations(FAULTS, 2)
    if FAULTS[earlier][0] != FAULTS[later][0]
]


@pytest.mark.parametrize("earlier", FAULTS)
def test_the_first_of_two_faults_is_reported(parties, earlier):
    for later in [later for first, later in PAIRS if first == earlier]:
        request, answer = faulty(parties, "key", earlier, later)
        named = FAULTS[earlier][1], earlier
        assert (answer.status, answer.reason) == named, f"{earlier} together with {later}"
        if request.expects_id:
            assert answer.id == request.id, f"{earlier} together with {later}"


@pytest.mark.parametrize("earlier", [name for name in FAULTS if name not in OF_TOKENS])
def test_the_first_of_two_faults_is_reported_with_a_certificate(parties, earlier):
    for later in [later for first, later in PAIRS if first == earlier and later not in OF_TOKENS]:
        _, answer = faulty(parties, "certificate", earlier, later)
        assert (answer.status, answer.reason) == (FAULTS[earlier][1], earlier), f"{earlier} together with {later}"


def test_the_second_change_of_provider_token_is_refused(parties):
    tokens = [f"bearer {provider_token(parties.key, age=age)}" for age in (30, 20, 10)]
    with Provider(parties.service) as provider:
        assert_accepted(provider.push(parties.token, authorization=tokens[0]))
        assert_accepted(provider.push(parties.token, authorization=tokens[0]))
        assert_accepted(provider.push(parties.token, authorization=tokens[1]))
        id = new_id()
        refused = provider.push(parties.token, authorization=tokens[2], id=id, priority="bad")
        assert_refused(refused, 429, "TooManyProviderTokenUpdates", id)
        assert_accepted(provider.push(parties.token, authorization=tokens[1]))


def test_a_removed_app_is_reported_with_its_removal_time(parties):
    before, after = parties.died
    for kind in KINDS:
        with parties.provider(kind) as provider:
            answer = provider.push(parties.dead_token)
        assert_refused(answer, 410, "Unregistered")
        assert type(answer.timestamp) is int
        assert before <= answer.timestamp <= after


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "post"])
def test_only_post_is_allowed(parties, method):
    with Provider(parties.service) as provider:
        answer = provider.push("", None, method=method, topic=None)
    assert answer.status == 405
    if method != "HEAD":
        assert_refused(answer, 405, "MethodNotAllowed")


@pytest.mark.parametrize("path", ["/", "/3", "/3/", "/2/device/" + UNKNOWN_TOKEN, "/3/device", "/3/Device/00"])
def test_another_path_is_not_found(parties, path):
    with parties.provider() as provider:
        assert_refused(provider.push("", path=path), 404, "BadPath")


def test_a_very_long_path_is_refused_and_the_connection_lives(parties):
    with parties.provider() as provider:
        assert provider.push("ab" * 2000).status in (400, 404)
        assert_accepted(provider.push(parties.token))


@pytest.mark.parametrize(
    "token",
    ["0", "zz" * 32, UNKNOWN_TOKEN[:-1], UNKNOWN_TOKEN[:-2], UNKNOWN_TOKEN + "00", "00" * 100, "%20", "é", "0" * 500],
)
def test_a_malformed_device_token_is_bad(parties, token):
    with parties.provider() as provider:
        assert_refused(provider.push(token), 400, "BadDeviceToken")


def test_a_device_token_with_one_bit_changed_is_bad(parties):
    with parties.provider() as provider:
        for position in range(0, 256, 5):
            changed = f"{int(parties.token, 16) ^ 1 << position:064x}"
            assert_refused(provider.push(changed), 400, "BadDeviceToken")


def test_a_device_token_may_be_in_capitals(parties):
    with parties.provider() as provider:
        assert_accepted(provider.push(parties.token.upper()))


@pytest.mark.parametrize(
    "name",
    ["apns-id", "apns-expiration", "apns-priority", "apns-topic", "apns-push-type", "apns-collapse-id", "authorization"],
)
@pytest.mark.parametrize("same", [True, False], ids=["same", "different"])
def test_a_doubled_header_is_refused(parties, name, same):
    values = {
        "apns-id": [new_id(), new_id()], "apns-expiration": [0, 9999999999], "apns-priority": [10, 5],
        "apns-topic": [TOPIC, OTHER], "apns-push-type": ["alert", "background"], "apns-collapse-id": ["a", "b"],
        "authorization": [f"bearer {provider_token(parties.key, age=age)}" for age in (0, 60)],
    }[name]
    pair = [(name, values[0]), (name, values[0] if same else values[1])]
    with parties.provider("key") as provider:
        left_out = {"topic": None} if name == "apns-topic" else {}
        if name == "authorization":
            provider.authorization = None
        answer = provider.push(parties.token, headers=pair, **left_out)
    assert (answer.status, answer.reason) == (400, "DuplicateHeaders")


def test_unknown_headers_may_be_doubled(parties):
    headers = [("user-agent", "a"), ("user-agent", "b"), ("x-custom", "1"), ("x-custom", "1"), ("content-length", "25")]
    with parties.provider() as provider:
        assert_accepted(provider.push(parties.token, headers=headers))


@pytest.mark.parametrize("value", ["", "x", "7b" * 16, "{%s}", "%s ", "%s0", "urn:uuid:%s", "é", "\x01"])
def test_a_malformed_uuid_is_a_bad_message_id(parties, value):
    with parties.provider() as provider:
        answer = provider.push(parties.token, id=value % new_id() if "%s" in value else value)
        assert_refused(answer, 400, "BadMessageId")


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5", "+1", "0x10", " ", "1e9", "9" * 30, "1\x7f", "é"])
def test_a_malformed_time_is_a_bad_expiration(parties, value):
    with parties.provider() as provider:
        assert_refused(provider.push(parties.token, expiration=value), 400, "BadExpirationDate")


@pytest.mark.parametrize("value", ["", "0", "2", "9", "11", "-5", "10.0", "high", "1\x00"])
def test_an_unknown_priority_is_bad(parties, value):
    with parties.provider() as provider:
        assert_refused(provider.push(parties.token, priority=value), 400, "BadPriority")


@pytest.mark.parametrize("value", ["", "telegram", "alert,background", "alert\t!"])
def test_an_unknown_push_type_is_invalid(parties, value):
    with parties.provider() as provider:
        assert_refused(provider.push(parties.token, push_type=value), 400, "InvalidPushType")


@pytest.mark.parametrize(
    "value",
    ["com.example.chat/x", "com.example..chat", ".com.example", "com.example.", "+", "#", "com/#", "a b", "ü", "x" * 201],
)
def test_a_malformed_topic_is_bad(parties, value):
    with parties.provider("key") as provider:
        assert_refused(provider.push(parties.token, topic=value), 400, "BadTopic")


def test_an_empty_body_is_distinguished_from_an_empty_object(parties):
    with parties.provider() as provider:
        assert_refused(provider.push(parties.token, None), 400, "PayloadEmpty")
        assert_refused(provider.push(parties.token, b""), 400, "PayloadEmpty")
        assert_accepted(provider.push(parties.token, b"{}"))


class TestTopicsOfCredentials:
    def test_a_certificate_of_one_topic_implies_it(self, parties):
        with parties.provider() as provider:
            assert_accepted(provider.push(parties.token, topic=None))

    def test_a_certificate_of_several_topics_needs_the_header(self, parties):
        with Provider(parties.service, parties.certificate_of_many) as provider:
            assert_refused(provider.push(parties.token, topic=None), 400, "MissingTopic")
            assert_accepted(provider.push(parties.token))
            assert_accepted(provider.push(parties.other_token, topic=OTHER))

    def test_a_certificate_serves_only_its_topics(self, parties):
        with parties.provider() as provider:
            assert_refused(provider.push(parties.other_token, topic=OTHER), 400, "TopicDisallowed")
            assert_refused(provider.push(parties.token, topic=f"{TOPIC}.voip"), 400, "TopicDisallowed")

    def test_a_key_of_one_topic_serves_only_it(self, parties):
        with Provider(parties.service, key=parties.key_for_other) as provider:
            assert_accepted(provider.push(parties.other_token, topic=OTHER))
            assert_refused(provider.push(parties.token, topic=TOPIC), 400, "TopicDisallowed")

    def test_a_team_key_serves_all_but_topics_of_other_teams(self, parties):
        with parties.provider("key") as provider:
            assert_accepted(provider.push(parties.token))
            assert_accepted(provider.push(parties.other_token, topic=OTHER))
            assert_refused(provider.push(parties.token, topic=STRANGERS), 400, "TopicDisallowed")

    def test_a_token_of_one_app_does_not_reach_another(self, parties):
        with parties.provider("key") as provider:
            assert_refused(provider.push(parties.token, topic=OTHER), 400, "DeviceTokenNotForTopic")
            assert_refused(provider.push(parties.other_token), 400, "DeviceTokenNotForTopic")

    def test_a_certificate_wins_over_a_provider_token(self, parties):
        with parties.provider() as provider:
            assert_accepted(provider.push(parties.token, authorization="bearer nonsense"))


class TestEnvironments:
    def test_a_device_token_is_bad_in_the_other_environment(self, parties):
        with parties.provider("key", name="sandbox.localhost") as provider:
            assert_refused(provider.push(parties.token), 400, "BadDeviceToken")

    def test_the_authority_header_selects_the_environment_without_sni(self, parties):
        with parties.provider("key", name="127.0.0.1") as provider:
            assert_accepted(provider.push(parties.token))
            sandbox = provider.push(parties.token, authority="api.development.push.apple.com")
            assert_refused(sandbox, 400, "BadDeviceToken")

    def test_a_key_of_the_sandbox_is_refused_in_production(self, parties):
        with Provider(parties.service, key=parties.key_for_sandbox) as provider:
            assert_refused(provider.push(parties.token), 403, "BadEnvironmentKeyInToken")
            assert_refused(provider.push(UNKNOWN_TOKEN), 403, "BadEnvironmentKeyInToken")

    def test_a_key_of_the_sandbox_serves_the_sandbox(self, parties):
        with Provider(parties.service, key=parties.key_for_sandbox, name="sandbox.localhost") as provider:
            assert_refused(provider.push(UNKNOWN_TOKEN), 400, "BadDeviceToken")

    def test_a_certificate_of_the_other_environment_is_disconnected(self, parties):
        certificate = parties.service.provider_certificate(TOPIC, environment="sandbox")
        with Provider(parties.service, certificate) as provider:
            goaway = provider.wait_for_goaway()
            assert goaway.additional_data == b'{"reason":"BadCertificateEnvironment"}'
            assert (goaway.last_stream_id, goaway.error_code) == (0, 0)
            provider.wait_for_close()


class TestExplanations:
    """`herald-explain: 1` asks for the reason in words."""

    def test_a_refusal_has_an_explanation_field(self, parties):
        with parties.provider() as provider:
            answer = provider.push(UNKNOWN_TOKEN, explain=1)
        assert (answer.status, answer.reason) == (400, "BadDeviceToken")
        assert answer.body.startswith(b'{"reason":"BadDeviceToken",')
        (words,) = [value for name, value in answer.json.items() if name != "reason"]
        assert isinstance(words, str) and " " in words
        assert answer.frames == [(len(answer.body), True)] and len(answer.body) < 1024

    def test_a_success_has_an_explanation_header(self, parties):
        with parties.provider() as provider:
            explained = provider.push(parties.token, explain=1)
            plain = provider.push(parties.token)
        known = {":status", "apns-id"}
        assert {name for name, _ in plain.headers} == known
        (more,) = {name for name, _ in explained.headers} - known
        assert " " in explained.header(more)

    def test_every_explanation_is_short(self, parties):
        for name in FAULTS:
            if name not in OF_TOKENS:
                request = Request(parties)
                FAULTS[name][2](request)
                request.fields["explain"] = 1
                with parties.provider() as provider:
                    answer = request.send(provider)
                assert answer.reason == name
                assert len(answer.json) == (3 if name == "Unregistered" else 2)
                assert len(answer.body) < 1024
