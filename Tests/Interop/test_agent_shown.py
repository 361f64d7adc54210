"""The display record of every payload that a device presents: from curl to `herald agent shown`."""

import json
import pathlib

import pytest

from agents import MONOPOLY, Agent, Local, curl
from commands import one_line
from parties import new_id
from service import herald

PAYLOADS = pathlib.Path(__file__).parent.parent / "Payloads"
CASES = [
    (case, view)
    for case in json.loads((PAYLOADS / "expectations.json").read_text())
    for view in case["present"]
]
# An app that was opened has a picture of how it was left, which comes before the image of its bundle. Unlocking opens it too.
CASES.sort(key=lambda case: ["background", "locked", "foreground"].index(case[1]["state"]))
APP = "com.example.monopoly"


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
    assert "no agent is running" in one_line(herald("agent", "show", "--folder", tmp_path, check=False))
    assert herald("agent", "set", "--folder", tmp_path, check=False).returncode == 64
    loud = herald("agent", "allow", APP, "alert", "--style", "loud", "--folder", tmp_path, check=False)
    assert loud.returncode == 64 and "--style is banner, alert or none" in loud.stderr
