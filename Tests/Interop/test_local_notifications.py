"""Local notifications: scheduled on the device, shown by its own clock, without a provider."""

import json
import signal
import time

import pytest

from agents import MONOPOLY, Agent, Local, make_bundle
from commands import one_line
from machine_clock import MachineClock
from service import HERALD, PATIENCE, TOPIC, eventually

GAME = "com.example.monopoly"
BUTTONS = {"TIMER": {"actions": [{"identifier": "more", "title": "One more minute"}]}}


def scheduled(device, name, *options, app=GAME):
    """The due time in UTC, as the command prints it."""
    line = device.command("schedule", "--app", app, "--id", name, *options).stdout.strip()
    assert line.startswith(f"{name} of {app}: due ")
    return line.removeprefix(f"{name} of {app}: due ").split(",")[0]


def pending(device):
    return [each["notification"] for each in json.loads(device.command("pending", "--json").stdout)]


@pytest.fixture(scope="module")
def one(shared, tmp_path_factory):
    identity, _ = shared.device("agent")
    agent = Agent(shared, tmp_path_factory.mktemp("local") / "device", identity)
    agent.start("--app", MONOPOLY, "--allow", "alert,badge,sound")
    agent.token(GAME)
    yield agent
    agent.close()


@pytest.fixture
def device(one):
    """A device that other tests used: nothing is pending, and its clock and time zone are those of the start."""
    one.command("cancel", "--app", GAME, "--all")
    one.command("set", "--clock", "0", "--time-zone", "UTC", "--language", "en", "--network", "on", "--locked", "off", "--home")
    return one


def test_it_is_shown_when_it_is_due_in_the_users_language_and_without_a_network(device):
    device.command("set", "--language", "fr", "--network", "off")
    payload = {"aps": {"alert": {"loc-key": "GAME_PLAY_REQUEST_FORMAT", "loc-args": ["Jenna", "Frank"]}}, "game": 7}
    scheduled(
        device, "invitation", "--after", "10m", "--payload", json.dumps(payload), "--sound", "chime.aiff", "--badge", 4,
        "--thread", "games",
    )
    device.command("set", "--clock", "+9m")
    assert "no notification" in one_line(device.command("shown", "invitation", check=False))
    device.command("set", "--clock", "+10m")
    record = device.shown("invitation", wait=0)
    assert (record["local"], record["apns_id"], record["topic"]) == ("invitation", "", GAME)
    assert record["body"] == "Frank et Jenna vous invitent à jouer au Monopoly" and record["language"] == "fr"
    assert (record["sound"], record["badge"]["after"], record["thread"]) == ("chime.aiff", 4, "games")
    line = device.next("notification", local="invitation")
    assert line["payload"]["game"] == 7 and line["presentation"]["place"] == "banner"
    assert pending(device) == []


def test_it_follows_the_calendar_of_the_devices_time_zone(device):
    device.command("set", "--time-zone", "America/New_York")
    assert scheduled(device, "party", "--at", "2099-07-04T20:00", "--alert", "The party begins") == "2099-07-05T00:00:00.000Z"
    assert scheduled(device, "launch", "--at", "2099-07-04T20:00Z", "--alert", "Lift-off") == "2099-07-04T20:00:00.000Z"
    assert scheduled(device, "morning", "--every", "day 07:00", "--alert", "Get up")[11:16] in ("11:00", "12:00")
    device.command("set", "--time-zone", "Asia/Tokyo")
    due = {each["notification"]: each["next"] for each in json.loads(device.command("pending", "--app", GAME, "--json").stdout)}
    assert due["party"] - due["launch"] == -9 * 3600
    assert due["morning"] % 86_400 == 22 * 3600, "seven o'clock in Tokyo"
    (app,) = device.show()["apps"]
    assert [(each["id"], each["body"], each["every"]) for each in app["pending"]] == [
        ("morning", "Get up", "day 07:00"), ("party", "The party begins", None), ("launch", "Lift-off", None),
    ]
    assert device.show()["time_zone"] == "Asia/Tokyo"


def test_a_repeating_one_that_was_missed_is_shown_once_and_goes_on(device):
    scheduled(device, "hourly", "--every", "1h", "--alert", "Drink a glass of water")
    device.command("set", "--clock", "+1d")
    first = device.shown("hourly")
    device.command("set", "--clock", "+25h")
    second = device.shown("hourly")
    assert first["due"] < second["due"] and second["replaces"] == "hourly"
    assert [each["local"] for each in device.show()["notifications"] if each["local"] == "hourly"] == ["hourly"]
    assert pending(device) == ["hourly"]


def test_it_is_replaced_cancelled_and_limited(device):
    scheduled(device, "a", "--after", "1h", "--alert", "first")
    later = scheduled(device, "a", "--after", "2h", "--alert", "second")
    scheduled(device, "b", "--after", "1h", "--alert", "third")
    lines = device.command("pending").stdout.splitlines()
    assert lines[0].startswith(f"b of {GAME}: due ") and lines[1] == f"a of {GAME}: due {later}"
    device.command("cancel", "--app", GAME, "b")
    assert pending(device) == ["a"]
    assert "no pending" in one_line(device.command("cancel", "--app", GAME, "b", check=False))
    local = Local(device.folder)
    for number in range(63):
        content = {"aps": {"alert": str(number)}}
        assert local.ask("schedule", topic=GAME, notification=str(number), payload=content, after=6000)["ok"]
    refused = device.command("schedule", "--app", GAME, "--after", "1m", "--alert", "65", check=False)
    assert "already has 64 pending" in one_line(refused)
    assert local.ask("cancel", topic=GAME)["ok"] and local.ask("pending", topic=GAME)["pending"] == []
    local.close()


@pytest.mark.parametrize(
    "options, status, words",
    [
        (("--after", "soon"), 64, "like 90s"), (("--at", "tomorrow"), 64, "2026-12-24T18:00"), (("--every", "10s"), 64, "15m"),
        ((), 64, "--after, --at and --every"), (("--at", "2020-01-01T00:00Z"), 1, "is past"),
        (("--after", "1m", "--payload", '{"aps":{"content-available":1}}'), 1, "only a remote notification"),
    ],
)
def test_a_wrong_notification_is_explained(device, options, status, words):
    result = device.command("schedule", "--app", GAME, *options, *(() if "--payload" in options else ("--alert", "x")), check=False)
    assert result.returncode == status and words in result.stderr
    assert pending(device) == []


def test_a_killed_agent_shows_it_once(shared, tmp_path):
    identity, _ = shared.device("agent")
    agent = Agent(shared, tmp_path / "device", identity)
    agent.start("--app", TOPIC, "--allow", "alert")
    agent.token(TOPIC)
    agent.kill()
    # While no agent runs, the commands work on the folder.
    scheduled(agent, "now", "--after", "1ms", "--alert", "due while nothing ran", app=TOPIC)
    scheduled(agent, "never", "--after", "1h", "--alert", "x", app=TOPIC)
    assert pending(agent) == ["now", "never"]
    agent.command("cancel", "--app", TOPIC, "never")
    agent.start()
    try:
        assert agent.next("notification", local="now")["presentation"]["shown"]
        agent.kill()
        agent.start()
        agent.next("connected")
        assert pending(agent) == [] and len(agent.show()["notifications"]) == 1
        assert not [line for line in agent.passed if line["event"] == "notification"]
        # Suspended while it came due.
        scheduled(agent, "later", "--after", "1s", "--alert", "due while it was suspended", app=TOPIC)
        agent.process.send_signal(signal.SIGSTOP)
        eventually(lambda: "\nState:\tT" in status(agent), what="the suspension")
        agent.process.send_signal(signal.SIGCONT)
        assert agent.shown("later")["shown"]
        assert len([each for each in agent.show()["notifications"] if each["local"] == "later"]) == 1
    finally:
        agent.close()


def test_it_follows_the_machines_clock_and_time_zone(shared, tmp_path, monkeypatch):
    clock = MachineClock(tmp_path)
    identity, _ = shared.device("agent")
    agent = Agent(shared, tmp_path / "device", identity)
    agent.prefix = clock.prefix
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    agent.start("--app", TOPIC, "--allow", "alert")
    try:
        agent.token(TOPIC)
        assert scheduled(agent, "morning", "--every", "day 07:00", "--alert", "Get up", app=TOPIC)[11:16] == "22:00"
        scheduled(agent, "timer", "--after", "23h", "--alert", "Done", app=TOPIC)
        clock.move(25 * 3600)
        assert agent.shown("timer")["shown"] and agent.shown("morning")["shown"]
        scheduled(agent, "timer", "--after", "23h", "--alert", "Done", app=TOPIC)
        clock.move(0)
        eventually(lambda: all(0 < due - time.time() < 86_400 for due in dues(agent).values()), what="the clock that was set back")
    finally:
        agent.close()
    # The machine travels while the agent does not run.
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    agent.start()
    try:
        agent.next("connected")
        assert agent.show()["time_zone"] == "America/Los_Angeles"
        # In winter and in summer.
        assert dues(agent)["morning"] % 86_400 in (15 * 3600, 14 * 3600)
    finally:
        agent.close()


def dues(agent):
    return {each["notification"]: each["next"] for each in json.loads(agent.command("pending", "--json").stdout)}


def status(agent):
    with open(f"/proc/{agent.process.pid}/status") as file:
        return file.read()


def test_an_app_on_the_socket_schedules_and_hears(shared, tmp_path):
    identity, _ = shared.device("agent")
    bundle = make_bundle(
        tmp_path / "app", TOPIC,
        {
            "open": f'{HERALD} agent schedule --app "$HERALD_APP" --after 1h --alert "from a program" --id program > printed',
            "receive": "cat > draft; mv draft receive.json",
        },
        UIBackgroundModes=["remote-notification"],
    )
    (bundle / "NotificationCategories.json").write_text(json.dumps(BUTTONS))
    agent = Agent(shared, tmp_path / "device", identity).start("--app", bundle, "--allow", "alert")
    try:
        agent.token(TOPIC)
        local = Local(agent.folder)
        assert local.ask("register", topic=TOPIC)["ok"]
        assert local.ask(
            "schedule", topic=TOPIC, notification="eggs", payload={"aps": {"alert": "Eggs", "category": "TIMER"}, "n": 3}, after=600
        )["ok"]
        (each,) = local.ask("pending", topic=TOPIC)["pending"]
        assert (each["notification"], each["topic"], each["trigger"]) == ("eggs", TOPIC, {"after": 600})
        assert each["payload"] == {"aps": {"alert": "Eggs", "category": "TIMER"}, "n": 3}
        assert local.ask("set", clock=600)["ok"]
        (shown,) = local.ask("device")["device"]["notifications"]
        assert [action["identifier"] for action in shown["actions"]] == ["more"]
        assert local.ask("act", notification=shown["id"], action="more")["ok"]
        heard = local.event("notification")
        assert (heard["why"], heard["local"], heard["apns_id"], heard["action"]) == ("action", "eggs", None, "more")
        assert heard["payload"]["n"] == 3
        assert local.ask("shown", notification="eggs")["shown"]["response"] == {"kind": "acted", "action": "more", "text": None}
        # The programs of its bundle hear of it, and schedule with the command.
        container = agent.folder / "containers" / TOPIC
        given = json.loads(eventually(lambda: read(container / "receive.json"), what="the program's input"))
        assert (given["event"], given["local"], given["apns_id"]) == ("receive", "eggs", None)
        assert local.ask("open", topic=TOPIC)["ok"]
        eventually(lambda: pending(agent) == ["program"], what="what the program schedules")
        # In front, the app gets it itself.
        assert local.ask("set", clock=7200)["ok"]
        heard = local.event("notification")
        assert (heard["why"], heard["local"]) == ("foreground", "program")
        local.close()
    finally:
        agent.close()


def read(path):
    return path.read_text() if path.exists() else ""
