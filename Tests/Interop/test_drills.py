"""Drills: failures on demand, which end by themselves and forge no answer."""

import json
import os
import re
import threading
import time
import urllib.request

import h2.settings
import pytest

from binary import Binary, framed
from commands import failed_start, one_line
from parties import advance, assert_accepted, assert_refused, new_id
from provider import Disconnected, Provider, away_device, listening_device
from service import PATIENCE, TOPIC, eventually, herald, once_within

STREAMS = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS

#: Every reason that a notification can be refused with, and its status.
REASONS = {
    400: [
        "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
        "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType", "MissingDeviceToken",
        "MissingTopic", "PayloadEmpty", "TopicDisallowed",
    ],
    403: [
        "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyInToken", "ExpiredProviderToken", "Forbidden",
        "InvalidProviderToken", "MissingProviderToken", "UnrelatedKeyIdInToken",
    ],
    404: ["BadPath"],
    405: ["MethodNotAllowed"],
    410: ["ExpiredToken", "Unregistered"],
    413: ["PayloadTooLarge"],
    429: ["TooManyProviderTokenUpdates", "TooManyRequests"],
    500: ["InternalServerError"],
    503: ["ServiceUnavailable", "Shutdown"],
}


class Scene:
    """A service of its own, a provider's certificate, a device that is away."""

    def __init__(self, service):
        self.service = service
        self.certificate = service.provider_certificate()
        self.away = away_device(service)

    @property
    def token(self):
        return self.away.token

    def provider(self, **options):
        return Provider(self.service, self.certificate, **options)

    def start(self, *words):
        # A drill lasts for a minute, which a test on a busy machine may need to begin.
        if not {"--for", "--lease"} & set(words):
            words = (*words, "--for", "10m")
        return json.loads(herald("drill", "start", *words, "--data", self.service.data, "--json").stdout)

    def stop(self, *words):
        return json.loads(herald("drill", "stop", *(words or ("--all",)), "--data", self.service.data, "--json").stdout)

    def list(self):
        return json.loads(herald("drill", "list", "--data", self.service.data, "--json").stdout)

    def states(self, id):
        return [f"{line['state']} ({line.get('reason')})" for line in self.service.journal(id)]

    def console(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.service.listeners['console']}{path}", timeout=PATIENCE) as answer:
            return answer.read().decode()


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    from service import Service

    service = Service(tmp_path_factory.mktemp("drills") / "data").start()
    yield Scene(service)
    service.close()


@pytest.fixture(autouse=True)
def nothing_is_left_on(request):
    yield
    if "scene" in request.fixturenames:
        request.getfixturevalue("scene").stop()


class TestRefusals:
    @pytest.mark.parametrize(
        "status,reason", [(status, reason) for status, reasons in REASONS.items() for reason in reasons]
    )
    def test_every_reason_has_its_status_and_is_not_delivered(self, scene, status, reason):
        id = new_id()
        scene.start("refuse", "--reason", reason)
        with scene.provider() as provider:
            answer = provider.push(scene.token, id=id)
        assert (answer.status, answer.reason, answer.id) == (status, reason, id)
        eventually(lambda: scene.states(id) == ["received (None)", "refused (drill)"], what="the journal's lines")

    def test_refused_notifications_do_not_reach_the_device(self, scene):
        with listening_device(scene.service) as device, scene.provider() as provider:
            scene.start("refuse", "--reason", "InternalServerError", "--token", device.token)
            assert provider.push(device.token).status == 500
            assert_accepted(provider.push(scene.token))
            scene.stop()
            id = new_id()
            assert_accepted(provider.push(device.token, id=id), id)
            assert device.next().id == id

    def test_an_explanation_names_the_drill(self, scene):
        drill = scene.start("refuse", "--reason", "TooManyRequests", "--retry-after", "30s")
        with scene.provider() as provider:
            answer = provider.push(scene.token, explain=1)
        assert answer.status == 429
        assert answer.header("retry-after") == "30"
        assert f"drill {drill['id']}" in answer.json["explanation"]

    @pytest.mark.parametrize("reason,usual", [("ServiceUnavailable", "10"), ("TooManyRequests", "1")])
    def test_the_default_retry_after_is_used(self, scene, reason, usual):
        scene.start("refuse", "--reason", reason)
        with scene.provider() as provider:
            assert provider.push(scene.token).header("retry-after") == usual

    @pytest.mark.slow
    def test_a_share_is_hit_and_the_seed_repeats_it(self, scene):
        def victims(seed):
            scene.start("refuse", "--reason", "Unregistered", "--share", "20%", "--seed", seed)
            with scene.provider() as provider:
                found = [index for index in range(200) if provider.push(scene.token).status == 410]
            scene.stop()
            return found

        first = victims(42)
        assert 15 <= len(first) <= 70
        assert victims(42) == first
        assert victims(43) != first

    def test_a_drill_may_apply_to_one_topic(self, scene):
        other = "com.example.drilled"
        device = away_device(scene.service, TOPIC, other)
        with Provider(scene.service, scene.service.provider_certificate(TOPIC, other)) as provider:
            scene.start("refuse", "--reason", "Forbidden", "--topic", other)
            assert provider.push(device.tokens[TOPIC], topic=TOPIC).status == 200
            assert_refused(provider.push(device.tokens[other], topic=other), 403, "Forbidden")

    def test_faults_of_a_request_are_reported_before_the_drill(self, scene):
        scene.start("refuse", "--reason", "InternalServerError")
        with scene.provider() as provider:
            assert_refused(provider.push("00" * 32), 400, "BadDeviceToken")
            assert_refused(provider.push(scene.token, priority=7), 400, "BadPriority")


class TestAnswers:
    def test_an_answer_is_delayed_but_the_notification_is_not(self, scene):
        with listening_device(scene.service) as device, scene.provider() as provider:
            scene.start("latency", "--latency", "4s..4500ms", "--token", device.token)
            # Again, if the machine pauses for four seconds between the two.
            for _ in range(5):
                id = new_id()
                begin = time.monotonic()
                stream = provider.send(device.token, id=id)
                assert device.next().id == id
                provider.ping()
                is_delivered_first = not provider.answers[stream].ended
                assert_accepted(provider.answer(stream), id)
                assert time.monotonic() - begin >= 4
                if is_delivered_first:
                    return
            pytest.fail("the notification was delayed like its answer")

    def test_a_silent_notification_is_lost(self, scene):
        id = new_id()
        scene.start("silence")
        with scene.provider() as provider:
            stream = provider.send(scene.token, id=id)
            provider.ping()
            scene.stop()
            # Silence outlasts the drill, and disturbs no other request.
            assert_accepted(provider.push(scene.token))
            assert not provider.answers[stream].ended
        eventually(lambda: scene.states(id) == ["received (None)", "lost (drill)"], what="the journal's lines")

    def test_refusals_are_answered_during_silence(self, fresh):
        scene = Scene(fresh("--token-burst", "1", "--token-rate", "1").start())
        with scene.provider() as provider:
            scene.start("silence", "--accepted", "--token", scene.token)
            # One is allowed, and one more each second: two within a second come sooner or later on any machine.
            sent = {}
            while not any(provider.answers[stream].ended for stream in sent):
                assert len(sent) < 900
                id = new_id()
                sent[provider.send(scene.token, id=id)] = id
                provider.ping()
            ((stream, id),) = [pair for pair in sent.items() if provider.answers[pair[0]].ended]
            assert_refused(provider.answers[stream], 429, "TooManyRequests", id)
            assert scene.states(id) == ["refused (TooManyRequests)"]

    def test_a_silent_notification_may_be_accepted(self, scene):
        with listening_device(scene.service) as device, scene.provider() as provider:
            scene.start("silence", "--accepted", "--token", device.token)
            id = new_id()
            stream = provider.send(device.token, id=id)
            assert device.next().id == id
            provider.ping()
            assert not provider.answers[stream].ended
            eventually(lambda: any(state.startswith("delivered") for state in scene.states(id)), what="the delivery's line")
            eventually(lambda: "answer withheld (drill)" in scene.states(id), what="the drill's line")


class TestConnections:
    def test_goaway_in_mid_batch_names_the_last_answered_stream(self, scene):
        with scene.provider() as provider:
            provider.wait_for_settings()
            scene.start("goaway", "--share", "2%", "--seed", 5)
            sent = []
            with pytest.raises(Disconnected):
                for _ in range(2000):
                    id = new_id()
                    sent.append((provider.send(scene.token, id=id), id))
                    provider.pump(lambda: provider.goaways or provider.h2.open_outbound_streams < 200)
                    if provider.goaways:
                        break
                provider.pump(lambda: False)
            (goaway,) = provider.goaways
            assert goaway.error_code == 0
            known = {line["id"] for line in scene.service.journal("--device", scene.away.id, "--limit", "10000")}
            for stream, id in sent:
                answer = provider.answers[stream]
                if stream <= goaway.last_stream_id:
                    assert answer.status == 200, f"stream {stream} of {goaway.last_stream_id}"
                else:
                    assert not answer.status
                    assert id not in known

    def test_goaway_may_give_a_reason(self, scene):
        scene.start("goaway", "--reason", "InternalServerError")
        with scene.provider() as provider:
            assert_accepted(provider.push(scene.token))
            assert provider.wait_for_goaway().additional_data == b'{"reason":"InternalServerError"}'
            provider.wait_for_close()

    def test_the_stream_limit_falls_to_one_and_rises(self, scene):
        with scene.provider() as provider:
            assert provider.wait_for_settings()[STREAMS] == 1000
            drill = scene.start("streams")
            assert provider.wait_for_settings(2)[STREAMS] == 1
            with scene.provider() as another:
                assert another.wait_for_settings()[STREAMS] == 1
            assert_accepted(provider.push(scene.token))
            scene.stop(drill["id"])
            assert provider.wait_for_settings(3)[STREAMS] == 1000

    def test_the_stream_limit_goes_up_and_down(self, scene):
        with scene.provider() as provider:
            provider.wait_for_settings()
            scene.start("streams", "--streams", "3", "--every", "2s")
            assert [provider.wait_for_settings(n)[STREAMS] for n in (2, 3, 4)] == [3, 1000, 3]

    def test_a_connection_is_dropped_without_goaway(self, scene):
        id = new_id()
        scene.start("drop")
        with scene.provider() as provider:
            provider.wait_for_settings()
            provider.send(scene.token, id=id)
            provider.wait_for_close()
            assert provider.goaways == []
            assert provider.answers[1].status == 0
        eventually(lambda: scene.states(id) == ["received (None)", "lost (drill)"], what="the journal's line")

    def test_a_connection_shuts_down_in_a_burst(self, scene):
        with scene.provider() as provider:
            provider.wait_for_settings()
            assert_accepted(provider.push(scene.token))
            scene.start("shutdown", "--share", "5%", "--seed", "3")
            streams = []
            try:
                for _ in range(400):
                    streams.append(provider.send(scene.token))
                provider.pump(lambda: provider.goaways)
            except Disconnected:
                pass
            provider.wait_for_close()
            assert provider.goaways[-1].additional_data == b'{"reason":"Shutdown"}'
            refused = [provider.answers[stream] for stream in streams if provider.answers[stream].status == 503]
            assert refused
            assert_refused(refused[0], 503, "Shutdown")
        # The service itself goes on.
        scene.stop()
        with scene.provider() as provider:
            assert_accepted(provider.push(scene.token))


class TestDrillEnd:
    def test_a_drill_ends_by_itself_and_is_logged(self, scene):
        with scene.provider() as provider:
            # Long enough for the machine to see it.
            for seconds in (4, 15, 60):
                drill = scene.start("refuse", "--reason", "Forbidden", "--for", f"{seconds}s")
                if provider.push(scene.token).status == 403:
                    break
            else:
                pytest.fail("nothing was refused")
            eventually(lambda: provider.push(scene.token).status == 200, timeout=2 * PATIENCE, what="the end of the drill")
        assert scene.list() == []
        lines = lambda: [line for line in scene.service.lines if f"drill={drill['id']} " in line]
        logged = eventually(lines, what="the log")
        assert "drill begins" in logged[0] and " warning " in logged[0] and "403 Forbidden" in logged[0]
        eventually(lambda: any(f"drill={drill['id']} " in l and "drill ends" in l for l in scene.service.lines))

    @pytest.mark.parametrize("kind", ["refuse", "latency", "silence", "streams"])
    def test_a_drill_may_be_stopped(self, scene, kind):
        more = {"refuse": ["--reason", "Forbidden"], "latency": ["--latency", "2s"]}.get(kind, [])
        drill = scene.start(kind, *more)
        assert [entry["id"] for entry in scene.list()] == [drill["id"]]
        assert scene.stop(drill["id"])[0]["id"] == drill["id"]
        assert scene.list() == []
        with scene.provider() as provider:
            assert_accepted(provider.push(scene.token))

    def test_health_and_metrics_show_active_drills(self, scene):
        assert "drills" not in json.loads(scene.console("/health"))
        scene.start("refuse", "--reason", "Forbidden", "--share", "50%")
        report = json.loads(scene.console("/health"))
        assert report["status"] == "ready"
        assert re.fullmatch(r"drill \d+: refuse with 403 Forbidden, for 50 % of the requests, \d+ s left", *report["drills"])
        assert "herald_drills_active 1" in scene.console("/metrics")
        with scene.provider() as provider:
            provider.push_many([scene.token] * 20)
        counted = r'herald_drilled_requests_total\{kind="refuse"\} [1-9]'
        eventually(lambda: re.search(counted, scene.console("/metrics")), what="the count")

    def test_no_log_and_no_list_holds_the_token(self, scene):
        entry = scene.start("drop", "--token", scene.token)
        assert scene.token not in json.dumps(entry)
        assert not any(scene.token in line for line in scene.service.lines)

    def test_a_drill_ends_with_the_process(self, fresh):
        scene = Scene(fresh().start())
        scene.start("refuse", "--reason", "Forbidden", "--for", "1h")
        scene.service.stop()
        scene.service.start()
        assert scene.list() == []

    def test_the_movable_clock_ends_a_drill(self, fresh):
        scene = Scene(fresh("--clock", "adjustable").start())
        scene.start("refuse", "--reason", "Forbidden", "--for", "1h")
        with scene.provider() as provider:
            assert provider.push(scene.token).status == 403
            advance(scene.service, 3601)
            assert_accepted(provider.push(scene.token))
        # Set back, it prolongs nothing: the machine's clock counts too.
        scene.start("refuse", "--reason", "Forbidden", "--for", "1s")
        advance(scene.service, -7200)
        eventually(lambda: scene.list() == [], what="the end of the drill")

    def test_a_stop_does_not_wait_for_a_drill(self, fresh):
        def stop():
            scene = Scene(fresh().start())
            scene.start("latency", "--latency", "600s")
            with scene.provider() as slow, scene.provider() as silent:
                held = slow.send(scene.token)
                slow.ping()
                scene.stop()
                scene.start("silence")
                silent.send(scene.token)
                silent.ping()
                begin = time.monotonic()
                scene.service.process.send_signal(15)
                assert_accepted(slow.answer(held))
                assert scene.service.process.wait(timeout=PATIENCE) == 0
                return time.monotonic() - begin

        # Connections whose requests go on are closed after eight seconds.
        once_within(8, stop)


def test_drills_with_a_number_make_a_list_of_answers(scene):
    scene.start("refuse", "--reason", "TooManyRequests", "--retry-after", "3s", "--first", "2")
    drill = scene.start("refuse", "--reason", "ServiceUnavailable", "--first", "1")
    assert drill["what"].endswith("ServiceUnavailable, once")
    with scene.provider() as provider:
        answers = [provider.push(scene.token) for _ in range(5)]
    assert [answer.status for answer in answers] == [429, 429, 503, 200, 200]
    assert [drill["hits"] for drill in scene.stop()] == [2, 1]


def test_a_lease_lasts_while_it_is_renewed_though_the_clock_moves(fresh):
    scene = Scene(fresh("--clock", "adjustable").start())
    drill = scene.start("refuse", "--reason", "InternalServerError", "--lease", "60s")
    advance(scene.service, 2 * 3600)
    renewed = json.loads(herald("drill", "renew", drill["id"], "--data", scene.service.data, "--json").stdout)
    assert renewed["id"] == drill["id"] and renewed["seconds_left"] > 50
    with scene.provider() as provider:
        assert provider.push(scene.token).status == 500
    scene.stop()
    assert "no drill" in one_line(herald("drill", "renew", drill["id"], "--data", scene.service.data, check=False))
    timed = scene.start("drop")["id"]
    assert "with a lease" in one_line(herald("drill", "renew", timed, "--data", scene.service.data, check=False))


class TestPayloads:
    def drilled(self, **drill):
        return {"aps": {"alert": "hello"}, "herald": {"drill": drill}}

    def test_a_payload_drill_needs_the_operators_permission(self, scene):
        """Without it the notification is delivered, and answer and journal say that nothing was tested."""
        with scene.provider() as provider:
            answer = provider.push(scene.token, self.drilled(reason="Unregistered"), explain=1)
            assert_accepted(answer)
            assert "herald.drill has no effect" in answer.header("herald-explanation")
            assert "drill without effect (None)" in scene.states(answer.id)
            plain = provider.push(scene.token, {"aps": {"alert": "herald"}, "herald": {"tag": "drill"}}, explain=1)
            assert "drill" not in plain.header("herald-explanation")
            assert "drill without effect (None)" not in scene.states(plain.id)

    def test_a_payload_drill_of_the_binary_interface_has_no_effect_and_is_told(self, fresh):
        scene = Scene(fresh("--payload-drills").start())
        payload = json.dumps(self.drilled(reason="Unregistered")).encode()
        with Binary(scene.service, scene.certificate) as connection:
            connection.send(framed(7, scene.token, payload))
            states = lambda: [line["state"] for line in scene.service.journal("--device", scene.away.id)]
            eventually(lambda: "drill without effect" in states(), what="the journal's line")

    def test_a_payload_drill_fails_twice_and_then_succeeds(self, fresh):
        scene = Scene(fresh("--payload-drills").start())
        with scene.provider() as provider:
            drilled = self.drilled(reason="ServiceUnavailable", first=2)
            assert [provider.push(scene.token, drilled).status for _ in range(4)] == [503, 503, 200, 200]

    def test_a_payload_drill_decides_the_outcome(self, fresh):
        scene = Scene(fresh("--payload-drills").start())
        eventually(lambda: any("payloads may request drills" in line for line in scene.service.lines), what="the log")
        with scene.provider() as provider, listening_device(scene.service) as device:
            answer = provider.push(scene.token, self.drilled(reason="Unregistered"), explain=1)
            assert (answer.status, answer.reason) == (410, "Unregistered")
            assert "the payload's drill" in answer.json["explanation"]
            answer = provider.push(scene.token, self.drilled(**{"reason": "TooManyRequests", "retry-after": 7}))
            assert (answer.status, answer.header("retry-after")) == (429, "7")
            begin = time.monotonic()
            assert_accepted(provider.push(device.token, self.drilled(latency=0.5)))
            assert time.monotonic() - begin >= 0.5
            # It reaches the device as it is.
            assert device.next().json == self.drilled(latency=0.5)
            lost = provider.send(scene.token, self.drilled(silence="lost"))
            assert_refused(provider.push(scene.token, self.drilled(reason="Unregisterd")), 400, "BadPayload")
            assert_accepted(provider.push(scene.token))
            assert not provider.answers[lost].ended
            provider.send(scene.token, self.drilled(connection="drop"))
            provider.wait_for_close()
            assert provider.goaways == []

    @pytest.mark.parametrize("where", ["option", "file", "variable"])
    def test_payload_drills_in_public_need_a_second_option(self, tmp_path, where):
        options, environment = ["--host", "0.0.0.0"], {}
        if where == "option":
            options.append("--payload-drills")
        elif where == "file":
            (tmp_path / "herald.yaml").write_text("payload-drills: true\n")
            options += ["--config", tmp_path / "herald.yaml"]
        else:
            environment["HERALD_PAYLOAD_DRILLS"] = "true"
        failed = failed_start(tmp_path / "data", *options, env=os.environ | environment)
        assert "--payload-drills-in-public" in one_line(failed)

    def test_payload_drills_in_public_are_allowed_with_both_options(self, fresh):
        fresh("--host", "0.0.0.0", "--payload-drills", "--payload-drills-in-public").start()


class TestConfiguration:
    def test_a_configured_drill_begins_with_the_service(self, fresh, tmp_path):
        (tmp_path / "herald.yaml").write_text("drill:\n  - refuse --reason Forbidden --for 10m\n  - streams --for 5m\n")
        scene = Scene(fresh("--config", str(tmp_path / "herald.yaml")).start())
        assert [(entry["kind"], entry["from"]) for entry in scene.list()] == [
            ("refuse", "configuration"), ("streams", "configuration"),
        ]
        with scene.provider() as provider:
            assert_refused(provider.push(scene.token), 403, "Forbidden")

    @pytest.mark.parametrize(
        "words,why",
        [
            ("refuse --reason Forbidden", "needs its duration"),
            ("refuse --reason Forbidden --for 2h", "for is a time from 1s to 3600s"),
            ("refuse --for 1m", "refuse needs a reason"),
            ("explode --for 1m", "is not a kind of drill: the kinds are refuse"),
            ("refuse --reason Nonsense --for 1m", "not a reason of APNs"),
            ("latency --for 1m", "latency needs a time"),
            ("", "drill:"),
        ],
    )
    def test_an_invalid_configured_drill_stops_the_start(self, tmp_path, words, why):
        assert why in one_line(failed_start(tmp_path / "data", "--drill", words))


class TestCommand:
    @pytest.mark.parametrize(
        "words",
        [
            ["nonsense"], ["refuse"], ["refuse", "--reason", "Nonsense"], ["latency"], ["latency", "--latency", "2s..1s"],
            ["latency", "--latency", "1h"], ["drop", "--share", "0%"], ["drop", "--share", "20"], ["drop", "--share", "101%"],
            ["drop", "--for", "2h"], ["drop", "--for", "0s"], ["drop", "--reason", "Forbidden"], ["streams", "--streams", "0"],
            ["streams", "--share", "20%"], ["silence", "--every", "2s"], ["drop", "--token", "xyz"],
            ["drop", "--topic", "a b"], ["refuse", "--reason", "Forbidden", "--retry-after", "0s"],
        ],
    )
    def test_an_invalid_drill_is_wrong_usage(self, scene, words):
        result = herald("drill", "start", *words, "--data", scene.service.data, check=False)
        assert result.returncode == 64
        assert scene.list() == []

    def test_an_unknown_token_is_refused(self, scene):
        result = herald("drill", "start", "drop", "--token", "00" * 32, "--data", scene.service.data, check=False)
        assert "did not issue the device token" in one_line(result)

    def test_an_inactive_drill_cannot_be_stopped(self, scene):
        result = herald("drill", "stop", "9999", "--data", scene.service.data, check=False)
        assert "no drill 9999 is active" in one_line(result)

    def test_no_more_drills_than_sixteen(self, scene):
        for _ in range(16):
            scene.start("streams")
        result = herald("drill", "start", "streams", "--data", scene.service.data, check=False)
        assert "16 drills are active already" in one_line(result)

    def test_a_drill_needs_a_service(self, tmp_path):
        herald("init", "--data", tmp_path / "data")
        result = herald("drill", "list", "--data", tmp_path / "data", check=False)
        assert "no service runs on" in one_line(result)

    def test_the_default_list_is_text(self, scene):
        assert herald("drill", "list", "--data", scene.service.data).stdout == "no drill is active\n"
        text = herald("drill", "start", "drop", "--share", "0.5%", "--seed", "9", "--data", scene.service.data).stdout
        assert re.fullmatch(r"drill \d+: drop the connection, for 0.5 % of the requests; until \S+, seed 9\n", text)
        assert "LEFT" in herald("drill", "list", "--data", scene.service.data).stdout


@pytest.mark.slow
def test_many_providers_under_all_drills_lose_no_accepted_notification(fresh):
    """Promise 2 during drills: of each device, the newest notification answered with 200, or a later one, is delivered."""
    scene = Scene(fresh().start())
    devices = [away_device(scene.service) for _ in range(3)]
    for words in (
        ["refuse", "--reason", "InternalServerError", "--share", "10%"], ["latency", "--latency", "1ms..50ms"],
        ["silence", "--share", "2%"], ["silence", "--accepted", "--share", "2%"], ["goaway", "--share", "1%"],
        ["drop", "--share", "1%"], ["shutdown", "--share", "5%"], ["streams", "--streams", "20", "--every", "2s"],
        ["reset", "--share", "2%"], ["reset", "--accepted", "--share", "2%"], ["refuse-stream", "--share", "2%"],
    ):
        scene.start(*words, "--seed", "11")
    accepted, sent, statuses = {}, {}, []
    end = time.monotonic() + 6
    # On a machine that takes its time it takes longer until everything has happened.
    last = end + 2 * PATIENCE

    def goes_on(device):
        lacks = accepted[device.id] < 0 or not {200, 500, 503} <= set(statuses)
        return time.monotonic() < (last if lacks else end)

    def send(device):
        sent[device.id], accepted[device.id] = [], -1
        while goes_on(device):
            with scene.provider() as provider:
                try:
                    while goes_on(device):
                        id = new_id()
                        sent[device.id].append(id)
                        answer = provider.answer(provider.send(device.token, id=id), 1)
                        statuses.append(answer.status)
                        if answer.status == 200:
                            accepted[device.id] = len(sent[device.id]) - 1
                        elif answer.status == 503:
                            break
                except (Disconnected, TimeoutError, Exception):  # noqa: BLE001 - h2 has many words for a lost connection
                    continue

    threads = [threading.Thread(target=send, args=(device,)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scene.stop()
    # 0: a stream that was reset.
    assert {200, 500, 503} <= set(statuses) <= {0, 200, 500, 503}
    for device in devices:
        with device.start():
            assert sent[device.id].index(device.next().id) >= accepted[device.id] >= 0
