"""The programs of a bundle: what starts them, and the news that they hear."""

import json

import pytest

from agents import Agent, Local, make_bundle
from service import TOPIC, eventually

SILENT = {"aps": {"content-available": 1}}
WAKES = {"UIBackgroundModes": ["remote-notification"]}


@pytest.fixture
def device(shared, tmp_path):
    identity, _ = shared.device("agent")
    agent = Agent(shared, tmp_path / "device", identity)
    yield agent
    agent.close()


def heard(device, name):
    """The lines that a program of the app got, each an object."""
    file = device.folder / "containers" / TOPIC / name
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def ran_in_background(device, id):
    return eventually(lambda: device.shown(id)["background"], what="the end of the run in the background")


def test_programs_hear_of_token_permission_and_languages(device, tmp_path):
    news = ("permission", "settings", "token", "languages")
    bundle = make_bundle(tmp_path / "app", TOPIC, {name: f"cat >> {name}" for name in news})
    token = device.start("--app", bundle, "--allow", "alert,badge").token(TOPIC)
    (told,) = eventually(lambda: heard(device, "token"), what="the token")
    assert (told["event"], told["topic"], told["token"], told["payload"]) == ("token", TOPIC, token, None)
    (told,) = eventually(lambda: heard(device, "permission"), what="the permission")
    assert told["granted"] == ["alert", "badge"]
    device.command("allow", TOPIC, "alert")
    (told,) = eventually(lambda: heard(device, "settings"), what="the settings")
    assert (told["event"], told["granted"]) == ("settings", ["alert"])
    device.command("set", "--language", "fr", "--language", "en")
    (told,) = eventually(lambda: heard(device, "languages"), what="the languages")
    assert (told["event"], told["languages"], told["topic"]) == ("languages", ["fr", "en"], TOPIC)
    # A new version of the app hears of the token that it has.
    device.command("install", bundle)
    eventually(lambda: len(heard(device, "token")) == 2, what="the token again")
    assert heard(device, "token")[1]["token"] == token and len(heard(device, "permission")) == 1


def test_a_program_that_fails_is_told(device, push, tmp_path):
    programs = {"token": "exit 1", "receive": "echo 'Access denied' >&2; exit 4"}
    token = device.start("--app", make_bundle(tmp_path / "app", TOPIC, programs, **WAKES), "--allow", "alert").token(TOPIC)
    assert device.next("fault", reason=f"{TOPIC}: its program token failed with exit code 1")
    push(token, {"aps": {"alert": "restart"}})
    assert device.next("fault", reason=f"{TOPIC}: its program receive failed with exit code 4: Access denied")


def test_an_app_that_is_not_open_hears_nothing_until_it_is_opened(device, push, tmp_path):
    programs = {"receive": "cat >> receive", "open": "cat >> open"}
    bundle = make_bundle(tmp_path / "app", TOPIC, programs)
    token = device.start("--app", bundle, "--allow", "alert").token(TOPIC)
    closed = push(token, {"aps": {"alert": "closed"}})
    tapped = push(token, {"aps": {"alert": "tapped"}})
    assert device.shown(closed)["shown"] and device.shown(tapped)["shown"]
    local = Local(device.folder)
    newest, oldest = local.ask("device")["device"]["notifications"]
    assert local.ask("close", notification=oldest["id"])["ok"]
    assert local.ask("tap", notification=newest["id"])["ok"]
    (opened,) = eventually(lambda: heard(device, "open"), what="the program open")
    assert opened["apns_id"] == tapped and opened["payload"]["aps"]["alert"] == "tapped"
    inside = push(token, {"aps": {"alert": "inside"}})
    (received,) = eventually(lambda: heard(device, "receive"), what="the program receive")
    assert (received["apns_id"], received["state"]) == (inside, "foreground")
    local.close()


def test_silent_notifications_do_not_depend_on_the_permission(device, push, shared, tmp_path):
    programs = {"background": "cat >> background; echo 'new data'", "receive": "cat >> receive"}
    bundle = make_bundle(tmp_path / "app", TOPIC, programs, **WAKES)
    token = device.start("--app", bundle, "--allow", "none").token(TOPIC)
    silent = push(token, SILENT, push_type="background", priority=5)
    assert ran_in_background(device, silent) == "new data"
    shown = device.shown(push(token, {"aps": {"alert": "unseen", "badge": 1, "sound": "default"}}))
    assert not shown["shown"] and shown["badge"]["after"] == 0 and shown["sound"] is None
    assert "the user switched alerts off" in shown["because"]
    # Without the background mode nothing can reach the app, and the service discards what comes.
    device.command("install", make_bundle(tmp_path / "app2", TOPIC, programs))
    device.next("settings_taken", topic=TOPIC)
    lost = push(token, SILENT, push_type="background", priority=5)
    eventually(lambda: "disabled" in json.dumps(shared.journal(lost)), what="the journal's line")


def test_a_silent_notification_of_which_nothing_runs_says_so(device, push):
    """An app without a program: it runs while it is on the local socket, and not before or after."""
    token = device.start("--app", TOPIC, "--allow", "alert").token(TOPIC)
    absent = push(token, SILENT, push_type="background", priority=5)
    shown = device.shown(absent)
    assert not shown["background_launch"] and shown["background"] is None and shown["state"] == "not running"
    assert shown["because"][0] == "it is silent" and "not on the local socket" in shown["because"][1]
    assert "the app runs in the background" not in device.command("shown", absent).stdout
    local = Local(device.folder)
    assert local.ask("register", topic=TOPIC)["ok"]
    present = push(token, {**SILENT, "n": 2}, push_type="background", priority=5)
    assert device.shown(present)["background_launch"]
    assert local.ask("done", topic=TOPIC, apns_id=present, result="new data")["ok"]
    assert ran_in_background(device, present) == "new data"
    local.close()


def test_a_silent_notification_waits_until_the_user_opens_the_app_again(device, push, tmp_path):
    bundle = make_bundle(tmp_path / "app", TOPIC, {"background": "cat >> background; echo 'no data'"}, **WAKES)
    token = device.start("--app", bundle, "--allow", "alert").token(TOPIC)
    local = Local(device.folder)
    assert local.ask("end", topic=TOPIC)["ok"]
    first, newest = (push(token, {**SILENT, "n": n}, push_type="background", priority=5) for n in (1, 2))
    for id in (first, newest):
        shown = device.shown(id)
        assert not shown["background_launch"] and "the app is not woken: the user ended it" in shown["because"]
    assert not heard(device, "background")
    assert local.ask("open", topic=TOPIC)["ok"]
    assert ran_in_background(device, newest) == "no data"
    assert [told["apns_id"] for told in heard(device, "background")] == [newest], "only the newest is kept"
    assert device.shown(first)["background"] is None
    local.close()
