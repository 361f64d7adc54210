"""The display record of every payload that a device presents: from curl to `herald agent shown`."""

import json
import pathlib
import urllib.request

import pytest

from agents import MONOPOLY, Agent, Local, curl, make_bundle
from commands import one_line
from parties import assert_accepted, new_id
from provider import Provider
from service import PATIENCE, herald

PAYLOADS = pathlib.Path(__file__).parent.parent / "Payloads"
CASES = [
    (case, view)
    for case in json.loads((PAYLOADS / "expectations.json").read_text())
    for view in case["present"]
]
# An app that was opened has a picture of how it was left, which comes before the image of its bundle. Unlocking opens it too.
CASES.sort(key=lambda case: ["background", "locked", "foreground"].index(case[1]["state"]))
APP = "com.example.monopoly"
MATCH = "com.example.match"


@pytest.fixture(scope="module")
def device(shared, tmp_path_factory):
    """A device with the app on it, its token, and its provider's certificate."""
    folder = tmp_path_factory.mktemp("agent") / "device"
    identity, _ = shared.device("monopoly")
    agent = Agent(shared, folder, identity).start("--app", MONOPOLY, "--allow", "alert,badge,sound")
    token = agent.token(APP)
    agent.certificate = shared.provider_certificate(APP)
    yield agent, token
    agent.close()


@pytest.mark.parametrize("case, view", CASES, ids=[f"{c['file']}-{v['language']}-{v['state']}" for c, v in CASES])
def test_every_payload_is_seen_as_expected(shared, device, case, view):
    agent, token = device
    agent.command("set", "--language", view["language"], "--locked", "on" if view["state"] == "locked" else "off")
    if view["state"] == "foreground":
        agent.command("set", "--open", APP)
    elif view["state"] == "background":
        agent.command("set", "--home")
    payload = (PAYLOADS / "files" / case["file"]).read_bytes()
    # Something has to run when it is woken: here the app itself, on the local socket.
    app = Local(agent.folder) if view.get("background_launch") else None
    if app:
        assert app.ask("register", topic=APP)["ok"]
    priority = 5 if case["push_type"] == "background" else 10
    id = curl(shared, agent.certificate, token, payload, topic=APP, push_type=case["push_type"], priority=priority)
    record = agent.shown(id)
    if app:
        app.close()
    assert (record["state"] == "foreground") == (view["state"] == "foreground")
    assert record["locked"] == (view["state"] == "locked")
    names = {"localization": "language", "reasons": "because"}
    for key, wanted in view.items():
        if key in ("language", "state", "seconds", "extension_seconds"):
            continue
        if key == "badge":
            before, after = record["badge"]["before"], record["badge"]["after"]
            assert after == (before if wanted == "unchanged" else wanted)
        else:
            assert record[names.get(key, key)] == wanted, key
    if not record["shown"]:
        assert record["because"]


def test_replacement_is_recorded(shared, device):
    agent, token = device
    agent.command("set", "--language", "en", "--locked", "off", "--home")
    payload = b'{"aps":{"alert":"1:0"}}'
    first = curl(shared, agent.certificate, token, payload, topic=APP, collapse_id="match")
    agent.shown(first)
    second = curl(shared, agent.certificate, token, payload, topic=APP, collapse_id="match")
    assert agent.shown(second)["replaces"] == first
    assert agent.shown(first)["replaced_by"] == second
    lines = agent.command("shown", second).stdout
    assert "shown as a banner: 1:0" in lines


def test_a_banner_goes_away_by_itself_and_an_alert_stays(shared, device):
    agent, token = device
    agent.command("set", "--language", "en", "--locked", "off", "--home")

    def shown(style, alert):
        agent.command("allow", APP, "alert,badge,sound", "--style", style)
        payload = json.dumps({"aps": {"alert": alert}}).encode()
        return agent.shown(curl(shared, agent.certificate, token, payload, topic=APP))

    def banner():
        snapshot = agent.show()
        found = [each["apns_id"] for each in snapshot["notifications"] if each["id"] == snapshot["banner"]]
        return found[0] if found else None

    alert = shown("alert", "stays")
    assert alert["style"] == "alert" and banner() == alert["apns_id"]
    assert "shown as an alert: stays" in agent.command("shown", alert["apns_id"]).stdout
    assert "alert style alert" in agent.command("show").stdout
    passing = shown("banner", "goes")
    assert passing["style"] == "banner" and passing["shown"]
    # The alert was below the banner, and waits for the user's answer.
    agent.command("set", "--clock", "+5s")
    assert banner() == alert["apns_id"]
    quiet = shown("none", "only in the list")
    assert (quiet["place"], quiet["style"]) == ("list", "none")
    assert quiet["because"] == ["the user's alert style for the app is none"]
    assert banner() == alert["apns_id"]
    agent.command("allow", APP, "alert,badge,sound", "--style", "banner")
    agent.command("set", "--clock", "0")


def test_an_unknown_notification_is_reported(device):
    agent, _ = device
    assert "no notification" in one_line(agent.command("shown", new_id(), check=False))


def test_wrong_usage_is_reported(tmp_path):
    assert herald("agent", "shown", check=False).returncode == 64
    assert "no device folder" in one_line(herald("agent", "show", "--folder", tmp_path / "nowhere", check=False))
    said = one_line(herald("agent", "show", "--folder", tmp_path, check=False))
    assert "no agent is running" in said and "systemctl start herald-agent" in said
    assert herald("agent", "set", "--folder", tmp_path, check=False).returncode == 64
    loud = herald("agent", "allow", APP, "alert", "--style", "loud", "--folder", tmp_path, check=False)
    assert loud.returncode == 64 and "--style is banner, alert or none" in loud.stderr

@pytest.fixture(scope="module")
def activities(shared, device, tmp_path_factory):
    """Sends a payload to the Live Activities of an app on that device; the apns-id."""
    agent, _ = device
    topic = f"{MATCH}.push-type.liveactivity"
    agent.command("install", make_bundle(tmp_path_factory.mktemp("match") / "Match.app", MATCH, HeraldTopics=[topic]))
    agent.command("allow", MATCH, "alert,badge,sound")
    token = agent.token(topic)
    # Live Activities need a provider token.
    with Provider(shared, key=shared.provider_key(MATCH)) as provider:

        def send(payload):
            id = new_id()
            answer = provider.push(token, payload.encode(), topic=topic, push_type="liveactivity", id=id)
            assert_accepted(answer, id)
            return id

        yield send


# Beyond 2^53, beyond 64 bits, beyond any Double, and spelled as nobody's writer would.
NUMBERS = (
    '{"a":1e400,"b":9007199254740993,"c":18446744073709551615,"d":1.10,"e":[-1E-400,0.1e1,-0],'
    '"f":123456789012345678901234567890.123456789}'
)


def test_every_number_reaches_app_screen_and_files_as_it_was_written(shared, device, activities):
    agent, token = device
    agent.command("set", "--language", "en", "--locked", "off", "--home")
    start = (
        f'{{"aps":{{"event":"start","timestamp":1,"attributes-type":"Match","attributes":{NUMBERS},'
        f'"content-state":{NUMBERS}}},"own":{NUMBERS}}}'
    )
    alert = f'{{"aps":{{"alert":{{"loc-key":"NOBODY_HAS_IT"}}}},"own":{NUMBERS}}}'.encode()
    activity = activities(start)
    assert NUMBERS in agent.command("shown", activity, "--wait", PATIENCE, "--json").stdout
    shown = curl(shared, agent.certificate, token, alert, topic=APP)
    notification = agent.shown(shown)
    assert notification["payload"] == alert.decode()
    view = next(each for each in agent.show()["notifications"] if each["apns_id"] == shown)
    local = Local(agent.folder)
    # The same action opens the app on the screen, and the snapshot has the payload that it gets.
    assert local.ask("tap", notification=view["id"])["ok"]
    local.close()
    text = agent.command("show", "--json").stdout
    # The content and the attributes of the Live Activity, and what the app was opened with.
    assert text.count(NUMBERS) >= 3
    # The files are read by an agent that starts again.
    agent.kill()
    agent.start("--screen", 0)
    screen = agent.next("screen")["url"]
    for path in ("api/device", "api/events"):
        with urllib.request.urlopen(screen + path, timeout=PATIENCE) as answer:
            # The whole answer, or the first event.
            line = next(line for line in answer if line.startswith((b"{", b"data:")))
            assert line.decode().count(NUMBERS) >= 2, path
    with urllib.request.urlopen(f"{screen}api/shown/{activity}", timeout=PATIENCE) as answer:
        assert NUMBERS in answer.read().decode()
    assert NUMBERS in agent.command("shown", activity, "--json").stdout
    text = agent.command("show", "--json").stdout
    assert text.count(NUMBERS) >= 2
    agent.shown(activities('{"aps":{"event":"end","timestamp":2,"dismissal-date":1}}'))


def test_a_number_that_cannot_be_a_time_or_count_is_ignored_by_name(shared, device, activities):
    agent, token = device
    agent.command("set", "--locked", "off", "--home")

    start = '"event":"start","attributes-type":"Match","attributes":{},"content-state":{"x":1e400}'
    for name in ("timestamp", "stale-date"):
        for value in ("1e300", "1e400", "-1e300", "1800000000000", '"soon"'):
            words = agent.shown(activities(f'{{"aps":{{{start},"{name}":{value}}}}}'))
            assert words["because"] == [f"aps.{name} is not a time in UNIX seconds: it is ignored"], value
            assert words["activity"]["event"] == "start" and "stale_date" not in words["activity"]
    ended = agent.shown(activities('{"aps":{"event":"end","timestamp":1e99,"dismissal-date":1e400}}'))
    assert ended["because"] == [
        "aps.timestamp is not a time in UNIX seconds: it is ignored",
        "aps.dismissal-date is not a time in UNIX seconds: it is ignored",
    ]

    def record(payload):
        return agent.shown(curl(shared, agent.certificate, token, payload.encode(), topic=APP))

    for badge in ("1e400", "9007199254740993", "1.5", "-1", '"7"'):
        words = record(f'{{"aps":{{"alert":"badge","badge":{badge}}}}}')
        assert words["because"] == ["aps.badge is not a whole number from 0 to 999999999: it is ignored"], badge
        assert words["shown"] and words["badge"]["before"] == words["badge"]["after"]
    assert record('{"aps":{"alert":"badge","badge":1.2e1}}')["badge"]["after"] == 12
    assert record('{"aps":{"badge":0}}')["badge"]["after"] == 0
    # Nothing of it has ended the agent.
    assert agent.process.poll() is None


def test_a_payload_that_is_nested_too_deep_is_recorded_and_skipped(shared, device):
    agent, token = device
    depth = 1500
    payload = ('{"aps":{"alert":"deep"},"x":' + "[" * depth + "]" * depth + "}").encode()
    record = agent.shown(curl(shared, agent.certificate, token, payload, topic=APP))
    assert record["because"] == ["the payload is nested deeper than 500 levels"] and not record["shown"]
    # It is acknowledged: the next one comes.
    assert agent.shown(curl(shared, agent.certificate, token, b'{"aps":{"alert":"next"}}', topic=APP))["shown"]


def test_numbers_of_a_local_notification_are_kept_or_refused(device):
    agent, _ = device
    payload = f'{{"aps":{{"alert":"local"}},"own":{NUMBERS}}}'
    agent.command("schedule", "--app", APP, "--after", "1h", "--id", "numbers", "--payload", payload)
    assert NUMBERS in agent.command("pending", "--app", APP, "--json").stdout
    agent.kill()
    # Without an agent, the command reads the folder.
    assert NUMBERS in agent.command("pending", "--app", APP, "--json").stdout
    agent.start()
    agent.next("connected")
    assert NUMBERS in agent.command("pending", "--app", APP, "--json").stdout
    agent.command("set", "--clock", "+2h")
    assert NUMBERS in agent.command("shown", "numbers", "--json").stdout.replace('\\"', '"')
    agent.command("set", "--clock", "0")
    local = Local(agent.folder)
    try:
        for after in ("1e400", "1e300", "-1", '"1"'):
            local.file.write(
                f'{{"id":"x","do":"schedule","topic":"{APP}","notification":"n","after":{after},'
                '"payload":{"aps":{"alert":"a"}}}\n'
            )
            local.file.flush()
            assert "\"after\" must be a number of seconds" in json.loads(local.file.readline())["error"]
        local.file.write('{"id":1e400,"do":"shown","notification":"numbers","wait":1e400}\n')
        local.file.flush()
        # The number of a request is echoed as it was written.
        answer = local.file.readline()
        assert '"id":1e400' in answer and "\\\"wait\\\" must be a number of seconds" in answer
    finally:
        local.close()
    wrong = agent.command(
        "schedule", "--app", APP, "--after", "1h", "--payload", '{"aps":{"alert":"a","badge":1e400}}', check=False
    )
    assert "whole number from 0 to 999999999" in one_line(wrong)


def test_files_that_cannot_be_read_are_set_aside(device):
    agent, _ = device
    agent.kill()
    state = agent.folder / "state.json"
    whole = json.loads(state.read_text())
    state.write_text(json.dumps({**whole, "activities": {"all": [{"former": True}]}, "lastNumber": 2**63 - 1}))
    log = agent.folder / "shown.jsonl"
    log.write_text(log.read_text() + '{"former":true}\n')
    agent.start()
    words = [agent.next("fault")["reason"] for _ in range(2)]
    assert "the device has lost activities" in words[0] and "state.json.unreadable" in words[0]
    assert "a line of" in words[1] and "shown.jsonl.unreadable" in words[1]
    assert json.loads((agent.folder / "state.json.unreadable").read_text())["apps"] == whole["apps"]
    assert (agent.folder / "shown.jsonl.unreadable").read_text() == '{"former":true}\n'
    # The apps and their tokens are still there.
    assert agent.token(APP)
    # Said once: the files are whole again.
    agent.kill()
    agent.start()
    agent.next("connected")
    assert not [line for line in agent.passed if line["event"] == "fault"]


def test_a_full_disk_costs_no_notification(shared, device):
    """An agent that cannot keep what comes ends, and comes back: the service must not take that for a message it cannot read."""
    agent, token = device
    agent.kill()
    # The file that replaces the state cannot be written.
    draft = agent.folder / "state.json.new"
    draft.mkdir()
    id = curl(shared, agent.certificate, token, b'{"aps":{"alert":"kept"}}', topic=APP, expiration=2_000_000_000)
    for _ in range(7):
        agent.start()
        assert agent.process.wait(timeout=PATIENCE) == 1
    draft.rmdir()
    agent.start()
    agent.next("connected")
    assert agent.shown(id)["body"] == "kept"
