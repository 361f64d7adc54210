"""Drills that end single streams, announce the end of a connection in two steps, or refuse in words of their own."""

import json
import re

import pytest

from parties import assert_accepted, new_id
from provider import listening_device
from service import PATIENCE, Service, eventually
from test_drills import Scene

INTERNAL_ERROR, REFUSED_STREAM = 2, 7
ALL_STREAMS = 2**31 - 1


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("streams") / "data", "--payload-drills").start()
    yield Scene(service)
    service.close()


@pytest.fixture(autouse=True)
def nothing_is_left_on(scene):
    yield
    scene.stop()


@pytest.mark.parametrize(
    "words,code,states",
    [
        (["reset"], INTERNAL_ERROR, ["received (None)", "lost (drill)"]),
        (["refuse-stream"], REFUSED_STREAM, ["received (None)", "refused (drill)"]),
    ],
)
def test_a_stream_is_reset_and_the_next_request_succeeds(scene, words, code, states):
    id = new_id()
    scene.start(*words, "--first", "1")
    with scene.provider() as provider:
        answer = provider.push(scene.token, id=id)
        assert (answer.status, answer.reset) == (0, code)
        eventually(lambda: scene.states(id) == states, what="the journal's lines")
        # The connection is as good as before, and so is the identifier.
        assert_accepted(provider.push(scene.token, id=id), id)
        assert provider.goaways == []


def test_a_stream_is_reset_after_its_notification_was_accepted(scene):
    with listening_device(scene.service) as device, scene.provider() as provider:
        scene.start("reset", "--accepted", "--token", device.token)
        id = new_id()
        answer = provider.push(device.token, id=id)
        assert (answer.status, answer.reset) == (0, INTERNAL_ERROR)
        assert device.next().id == id
        eventually(lambda: "answer withheld (drill)" in scene.states(id), what="the drill's line")


def test_more_resets_than_a_client_may_provoke_end_no_connection(scene):
    with scene.provider() as provider:
        provider.wait_for_settings()
        scene.start("refuse-stream")
        answers = provider.push_many([scene.token] * 500)
        assert {answer.reset for answer in answers} == {REFUSED_STREAM}
        scene.stop()
        assert_accepted(provider.push(scene.token))


@pytest.mark.parametrize("connection,code", [("reset", INTERNAL_ERROR), ("refuse-stream", REFUSED_STREAM)])
def test_a_payload_may_ask_for_a_reset(scene, connection, code):
    with scene.provider() as provider:
        drilled = {"aps": {}, "herald": {"drill": {"connection": connection, "first": 1}}}
        assert provider.push(scene.token, drilled).reset == code
        assert_accepted(provider.push(scene.token, drilled))


def test_a_graceful_goaway_answers_what_was_sent_before_it_was_seen(scene):
    scene.start("goaway", "--two-step", "--reason", "Shutdown")
    with scene.provider() as provider:
        provider.wait_for_settings()
        # The client sees the first GOAWAY, and answers the PING behind it, once it reads: after all of these.
        streams = [provider.send(scene.token) for _ in range(50)]
        provider.pump(lambda: len(provider.goaways) == 2, what="both GOAWAYs")
        first, second = provider.goaways
        assert (first.last_stream_id, first.error_code, first.additional_data) == (ALL_STREAMS, 0, b"")
        assert (second.error_code, second.additional_data) == (0, b'{"reason":"Shutdown"}')
        provider.wait_for_close()
        # The last one, unless the machine pauses for as long as Herald waits for a client that answers no PING.
        assert second.last_stream_id in streams
        for stream in streams:
            assert provider.answers[stream].status == (200 if stream <= second.last_stream_id else 0), stream


@pytest.mark.parametrize("reason", ['not "known" anywhere', None])
def test_a_refusal_may_have_any_status_and_any_text_or_no_body(scene, reason):
    id = new_id()
    words = ["--reason", reason] if reason else []
    drill = scene.start("refuse", "--status", "418", *words)
    assert drill["what"] == f"refuse with 418 {json.dumps(reason) if reason else 'without a body'}"
    with scene.provider() as provider:
        answer = provider.push(scene.token, id=id)
        explained = provider.push(scene.token, explain=1)
    assert (answer.status, answer.reason, answer.id, answer.header("retry-after")) == (418, reason, id, None)
    if reason:
        assert answer.body == b'{"reason":%s}' % json.dumps(reason).encode()
        assert f"drill {drill['id']} refuses it" in explained.json["explanation"]
    else:
        assert answer.headers_only and explained.headers_only
        assert f"drill {drill['id']} refuses it" in explained.header("herald-explanation")
    eventually(lambda: scene.states(id) == ["received (None)", "refused (drill)"], what="the journal's lines")
    (told,) = json.loads(scene.console("/health"))["drills"]
    assert drill["what"] in told
    counted = r'herald_provider_requests_total\{(?=.*status="418")(?=.*reason="drill").*\} [1-9]'
    eventually(lambda: re.search(counted, scene.console("/metrics")), timeout=PATIENCE, what="the count")


def test_a_known_reason_with_a_status_has_nothing_of_its_own(scene):
    scene.start("refuse", "--status", "503", "--reason", "ServiceUnavailable")
    with scene.provider() as provider:
        answer = provider.push(scene.token)
    assert (answer.status, answer.reason, answer.header("retry-after")) == (503, "ServiceUnavailable", None)
