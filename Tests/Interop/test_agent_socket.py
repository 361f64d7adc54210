"""The agent's local socket, used from Python and from a shell."""

import json
import socket
import sys

import pytest

from agents import Agent, Local, make_bundle
from parties import new_id
from service import PATIENCE, TOPIC, eventually


# Standard input to the agent's socket, what comes from there to standard output: what socat does, which is not everywhere.
PIPE = """
import os, shutil, socket, sys
agent = socket.socket(socket.AF_UNIX)
folder, name = os.path.split(os.environ["HERALD_SOCKET"])
os.chdir(folder)
agent.connect(name)
agent.sendall(sys.stdin.buffer.read())
agent.shutdown(socket.SHUT_WR)
shutil.copyfileobj(agent.makefile("rb"), sys.stdout.buffer)
"""


@pytest.fixture
def device(shared, tmp_path):
    identity, _ = shared.device("agent")
    agent = Agent(shared, tmp_path / "device", identity).start("--language", "de")
    eventually(lambda: (agent.folder / "run" / "agent.sock").exists(), what="the socket")
    yield agent
    agent.close()


@pytest.fixture
def local(device):
    local = Local(device.folder)
    yield local
    local.close()


def registered(local):
    assert local.ask("register", topic=TOPIC, wants=["alert", "badge"])["ok"]
    assert local.ask("permit", topic=TOPIC, allow=["alert", "badge", "sound"])["ok"]
    assert local.event("permission")["granted"] == ["alert", "badge"]
    return local.event("token")["token"]


def test_an_app_registers_and_receives(device, local, push):
    token = registered(local)
    # In the background it is shown, and the app hears when the user opens it.
    id = push(token, {"aps": {"alert": "hello"}, "n": 1})
    assert local.ask("shown", apns_id=id, wait=PATIENCE)["shown"]["body"] == "hello"
    (shown,) = local.ask("device")["device"]["notifications"]
    assert local.ask("tap", notification=shown["id"])["ok"]
    opened = local.event("notification")
    assert (opened["why"], opened["payload"]["n"], opened["apns_id"]) == ("opened", 1, id)
    assert local.ask("shown", apns_id=id)["shown"]["response"]["kind"] == "opened"
    # Now it is in the foreground, and gets the payload itself.
    id = push(token, {"aps": {"alert": "again"}})
    event = local.event("notification")
    assert (event["why"], event["state"], event["apns_id"]) == ("foreground", "foreground", id)
    assert local.ask("device")["device"]["notifications"] == []
    assert local.ask("state", topic=TOPIC, state="background")["ok"]
    id = push(token, {"aps": {"content-available": 1}}, push_type="background", priority=5)
    assert local.event("notification")["why"] == "background"
    assert local.ask("done", topic=TOPIC, apns_id=id, result="no data")["ok"]
    assert local.ask("shown", apns_id=id)["shown"]["background"] == "no data"
    assert "not working on" in local.ask("done", topic=TOPIC, apns_id=id, result="failed")["error"]


def test_languages_and_settings_are_reported(device, local):
    registered(local)
    assert local.ask("languages")["languages"] == ["de"]
    device.command("set", "--language", "fr", "--language", "de")
    assert local.event("languages")["languages"] == ["fr", "de"]
    device.command("allow", TOPIC, "none")
    assert local.event("settings")["granted"] == []


def test_an_app_registers_categories_and_hears_of_their_buttons(device, local, push):
    token = registered(local)
    payload = {"aps": {"alert": "Dinner?", "category": "INVITATION"}, "n": 1}
    accept = {"identifier": "accept", "title": "Accept"}
    reply = {"identifier": "reply", "title": "Reply", "text_input": True}
    assert local.ask("categories", topic=TOPIC, categories={"INVITATION": {"actions": [accept]}})["ok"]
    first = push(token, payload)
    assert [action["title"] for action in device.shown(first)["actions"]] == ["Accept"]
    # Others replace them, and outlive the agent.
    assert local.ask("categories", topic=TOPIC, categories={"INVITATION": {"actions": [reply]}})["ok"]
    local.close()
    device.kill()
    device.start().next("connected")
    again = Local(device.folder)
    assert again.ask("register", topic=TOPIC)["ok"]
    second = push(token, payload)
    assert [action["title"] for action in device.shown(second)["actions"]] == ["Reply"]
    shown = {each["apns_id"]: each["id"] for each in again.ask("device")["device"]["notifications"]}
    assert again.ask("act", notification=shown[first], action="accept")["ok"], "what is shown keeps its buttons"
    event = again.event("notification")
    assert (event["why"], event["action"], event["apns_id"]) == ("action", "accept", first)
    assert again.ask("act", notification=shown[second], action="reply", text="At eight")["ok"]
    event = again.event("notification")
    assert (event["action"], event["text"], event["payload"]["n"]) == ("reply", "At eight", 1)
    assert device.shown(second)["response"] == {"kind": "acted", "action": "reply", "text": "At eight"}
    again.close()


def test_a_disconnected_app_is_not_running_and_keeps_its_token(device, local):
    token = registered(local)
    local.ask("state", topic=TOPIC, state="foreground")
    local.close()
    eventually(lambda: device.show()["apps"][0]["state"] == "not running", what="the end of the app")
    again = Local(device.folder)
    again.ask("register", topic=TOPIC)
    assert again.event("token")["token"] == token
    again.close()


def test_the_last_registration_replaces_earlier_ones(device, local):
    token = registered(local)
    second = Local(device.folder)
    second.ask("register", topic=TOPIC)
    assert local.event("replaced")["topic"] == TOPIC
    assert second.event("token")["token"] == token
    assert "register" in local.ask("state", topic=TOPIC, state="foreground")["error"]
    second.close()


def test_a_watcher_gets_changes(device, local):
    watcher = Local(device.folder)
    assert watcher.ask("watch")["ok"]
    assert watcher.event("device")["device"]["locked"] is False
    local.ask("lock")
    while not watcher.event("device")["device"]["locked"]:
        pass
    watcher.close()


def test_a_shell_script_can_use_the_socket(device, local, tmp_path):
    pipe = tmp_path / "pipe.py"
    pipe.write_text(PIPE)
    # A pipeline: it says all, closes its half, and reads to the end.
    script = f'cat >/dev/null; printf \'{{"id":1,"do":"languages"}}\\n\' | {sys.executable} "{pipe}" > draft && mv draft answer'
    device.command("install", make_bundle(tmp_path / "app", TOPIC, {"open": script}))
    device.command("allow", TOPIC, "alert")
    assert local.ask("open", topic=TOPIC)["ok"]
    answer = device.folder / "containers" / TOPIC / "answer"
    eventually(answer.exists, what="the script's answer")
    assert json.loads(answer.read_text()) == {"id": 1, "ok": True, "languages": ["de"]}
    (app,) = local.ask("device")["device"]["apps"]
    assert app["state"] == "foreground"


def test_requests_are_answered_after_a_half_close(device, local):
    for _ in range(20):
        asking = Local(device.folder)
        asking.file.write('{"id":1,"do":"languages"}\n' * 100)
        asking.file.flush()
        asking.socket.shutdown(socket.SHUT_WR)
        assert len(asking.file.readlines()) == 100
        asking.close()


def test_a_half_close_ends_an_app_and_its_wait(device, local):
    leaving = Local(device.folder)
    leaving.ask("register", topic=TOPIC)
    leaving.file.write(json.dumps({"id": 9, "do": "shown", "apns_id": new_id(), "wait": 600}) + "\n")
    leaving.file.flush()
    leaving.socket.shutdown(socket.SHUT_WR)
    assert leaving.file.readline() == "", "no answer is better than a wrong one"
    eventually(lambda: device.show()["apps"][0]["state"] == "not running", what="the end of the app")
    leaving.close()


@pytest.mark.parametrize(
    "line, words",
    [
        ("nonsense", "must be an object"), ("[]", "must be an object"), ('{"id":7}', "must be one of"),
        ('{"id":7,"do":"fly"}', "must be one of \"register\", "), ('{"id":7,"do":"fly"}', "\"lock\", "), ('{"id":7,"do":"permit","topic":"a.b"}', "list of"),
        ('{"id":7,"do":"open","topic":"a b"}', "must be an app"), ('{"id":7,"do":"shown"}', "UUID"),
        ('{"id":7,"do":"state","topic":"a.b","state":"background"}', "register"),
        ('{"id":7,"do":"register","topic":"a.b","wants":["x"]}', "list of"),
        ('{"id":7,"do":"permit","topic":"a.b","allow":[],"style":"loud"}', "\"style\" must be"),
        ('{"id":7,"do":"categories","topic":"a.b","categories":{"A":{}}}', "A has no list \"actions\""),
        ('{"id":7,"do":"categories","topic":"a.b","categories":[]}', "must be an object, like"),
    ],
)
def test_a_wrong_request_is_explained(local, line, words):
    local.file.write(line + "\n")
    local.file.flush()
    answer = json.loads(local.file.readline())
    assert words in answer["error"]
    assert local.ask("languages")["ok"], "the connection goes on"


def test_a_too_long_request_is_refused(device, local):
    local.file.write("x" * 70_000)
    local.file.flush()
    assert "longer than" in json.loads(local.file.readline())["error"]
    assert local.file.readline() == ""


def test_a_client_that_does_not_read_is_disconnected(device, local):
    flood = Local(device.folder)
    flood.socket.settimeout(PATIENCE)
    with pytest.raises(OSError):
        for _ in range(200_000):
            flood.socket.sendall(b'{"id":1,"do":"device"}\n')
    assert local.ask("languages")["ok"]
