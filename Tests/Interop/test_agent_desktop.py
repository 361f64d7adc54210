"""`herald agent run --desktop`: notifications on a freedesktop session bus, and the user's responses."""

import json
import plistlib
import signal
import subprocess
import threading

import pytest

from desktop import DISMISSED, EXPIRED, Desktop
from parties import new_id
from provider import Provider
from service import HERALD, PATIENCE, TOPIC, eventually, herald

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f64540"
    "0000000049454e44ae426082"
)
SOUND = b"RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\x02\x00\x00\x00\x80\x80"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """An app with an icon, a sound and buttons."""
    folder = tmp_path_factory.mktemp("bundle") / "Chat.app"
    folder.mkdir()
    (folder / "Info.plist").write_bytes(
        plistlib.dumps({"CFBundleIdentifier": TOPIC, "CFBundleDisplayName": "Chat & Friends", "CFBundleDevelopmentRegion": "en"})
    )
    (folder / "AppIcon.png").write_bytes(PNG)
    (folder / "beep.wav").write_bytes(SOUND)
    categories = {
        "INVITATION": {
            "actions": [
                {"identifier": "reply", "title": "Reply…", "text_input": True},
                {"identifier": "accept", "title": "Accept"},
                {"identifier": "decline", "title": "Decline", "destructive": True},
            ]
        }
    }
    (folder / "NotificationCategories.json").write_text(json.dumps(categories))
    return folder


@pytest.fixture(scope="module")
def certificate(shared):
    return shared.provider_certificate()


@pytest.fixture
def desktop(tmp_path):
    desktop = Desktop(tmp_path)
    yield desktop
    desktop.close()


class Agent:
    """A device with a desktop."""

    def __init__(self, service, certificate, folder, bundle, environment):
        self.service = service
        self.folder = folder
        self.certificate = certificate
        identity, _ = service.device("desktop")
        self.process = subprocess.Popen(
            [
                HERALD, "agent", "run", "--identity", identity, "--folder", folder, "--app", bundle,
                "--allow", "alert,badge,sound", "--ca", service.ca, "--service", "localhost",
                "--device-port", str(service.listeners['device']),
                "--desktop",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        self.lines, self.complaints = [], []
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.complaints))
        ]
        for reader in self._readers:
            reader.start()
        self.token = eventually(self._token, what="the device token")

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    def _token(self):
        assert self.process.poll() is None, (self.lines, self.complaints)
        found = [line.rsplit(" ", 1)[1] for line in self.lines if line.startswith(f"token for {TOPIC}: ")]
        return found[0] if found else None

    def wait_complaint(self, words):
        return eventually(lambda: [line for line in self.complaints if words in line], what=words)

    def push(self, payload, **named):
        """Sends it a notification, and waits until it is there; its apns-id."""
        id = new_id()
        with Provider(self.service, certificate=self.certificate) as provider:
            assert provider.push(self.token, payload, id=id, **named).status == 200
        herald("agent", "shown", id, "--wait", str(PATIENCE), "--folder", self.folder)
        return id

    def response(self, id):
        """The user's response to a notification."""
        return json.loads(herald("agent", "shown", id, "--folder", self.folder, "--json").stdout)["response"]

    def device(self):
        return json.loads(herald("agent", "show", "--folder", self.folder, "--json").stdout)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE)
        for reader in self._readers:
            reader.join(timeout=PATIENCE)
        return code


@pytest.fixture
def agent(shared, certificate, tmp_path, bundle, desktop):
    """Starts the agent of this desktop."""
    agents = []

    def start(environment=None):
        agents.append(Agent(shared, certificate, tmp_path / "device", bundle, environment or desktop.environment))
        return agents[-1]

    yield start
    for agent in agents:
        if agent.process.poll() is None:
            agent.process.kill()
            agent.process.wait(timeout=PATIENCE)


@pytest.fixture
def device(agent, desktop):
    """An agent with a running desktop."""
    desktop.start()
    device = agent()
    device.wait_complaint("notifications are shown on the desktop")
    return device


def test_texts_icon_sound_and_buttons_are_shown(device, desktop):
    alert = {"title": "Tom & <Jerry>", "subtitle": "at 8", "body": '<b>Bring</b> "wine" & <img src="file:///etc/passwd">\u0000'}
    device.push({"aps": {"alert": alert, "sound": "beep.wav", "category": "INVITATION"}})
    (shown,) = desktop.wait_shown(1)
    assert (shown.app, shown.replaces, shown.summary) == ("Chat & Friends", 0, "Tom & <Jerry>")
    assert shown.body.rstrip() == 'at 8\n&lt;b&gt;Bring&lt;/b&gt; "wine" &amp; &lt;img src="file:///etc/passwd"&gt;'
    assert shown.actions[0][0] == "default"
    assert [label for _, label in shown.actions[1:]] == ["Accept", "Decline"]
    assert open(shown.icon, "rb").read() == PNG
    assert open(shown.hints["sound-file"], "rb").read() == SOUND
    assert (shown.hints["urgency"], shown.timeout) == (1, -1)


@pytest.mark.parametrize(
    "aps, urgency, sound",
    [
        ({"interruption-level": "passive", "sound": "default"}, 0, ("suppress-sound", True)),
        ({"sound": "default"}, 1, ("sound-name", "message-new-instant")),
        ({"interruption-level": "time-sensitive"}, 2, ("suppress-sound", True)),
        ({"interruption-level": "critical", "sound": {"critical": 1, "name": "default"}}, 2, ("sound-name", "message-new-instant")),
    ],
    ids=["passive", "active", "time-sensitive", "critical"],
)
def test_urgency_and_sound_follow_the_payload(device, desktop, aps, urgency, sound):
    device.push({"aps": {"alert": "Dinner is ready"} | aps})
    (shown,) = desktop.wait_shown(1)
    assert (shown.summary, shown.body) == ("Chat & Friends", "Dinner is ready")
    assert shown.hints["urgency"] == urgency
    assert shown.hints.get(sound[0]) == sound[1]


def test_text_that_looks_like_an_option_is_shown(device, desktop):
    device.push({"aps": {"alert": {"title": "--help", "body": "-h string:a:b"}}})
    (shown,) = desktop.wait_shown(1)
    assert (shown.summary, shown.body) == ("--help", "-h string:a:b")


def test_a_collapse_identifier_replaces_in_place(device, desktop):
    device.push({"aps": {"alert": "1:0"}}, collapse_id="score")
    desktop.wait_shown(1)
    device.push({"aps": {"alert": "Dinner is ready"}})
    desktop.wait_shown(2)
    device.push({"aps": {"alert": "2:0"}}, collapse_id="score")
    shown = desktop.wait_shown(3)
    assert [(one.body, one.replaces) for one in shown] == [("1:0", 0), ("Dinner is ready", 0), ("2:0", 1)]
    assert desktop.closed() == []


def test_a_thread_is_one_notification_with_a_count(device, desktop):
    def push(text):
        return device.push({"aps": {"alert": text, "thread-id": "lena"}})

    first = push("one")
    desktop.wait_shown(1)
    herald("agent", "set", "--language", "de", "--folder", device.folder)
    second = push("two")
    device.push({"aps": {"alert": "of another thread"}})
    shown = desktop.wait_shown(3)
    assert [(one.summary, one.body, one.replaces) for one in shown] == [
        ("Chat & Friends", "one", 0), ("Chat & Friends (2)", "two", 1), ("Chat & Friends", "of another thread", 0),
    ]
    # The device's own button is in the user's language.
    assert [one.actions[0][1] for one in shown] == ["View", "Ansehen", "Ansehen"]
    desktop.close_notification(1, DISMISSED)
    for id in (first, second):
        assert eventually(lambda: device.response(id), what="the response")["kind"] == "closed"
    assert len(device.device()["notifications"]) == 1


@pytest.mark.parametrize("alone", [False, True], ids=["said to all", "said to the agent alone"])
def test_a_click_opens_the_app(device, desktop, alone):
    id = device.push({"aps": {"alert": "Dinner is ready"}})
    desktop.wait_shown(1)
    to = desktop.connection_of(device.process.pid) if alone else None
    desktop.click(1, to=to)
    response = eventually(lambda: device.response(id), what="the response")
    assert response["kind"] == "opened"
    assert device.device()["foreground"] == TOPIC
    desktop.wait_closed(1)


def test_a_button_runs_its_action(device, desktop):
    id = device.push({"aps": {"alert": "Dinner?", "category": "INVITATION"}})
    (shown,) = desktop.wait_shown(1)
    desktop.click(1, dict((label, key) for key, label in shown.actions)["Decline"])
    assert eventually(lambda: device.response(id), what="the response") == {"kind": "acted", "action": "decline", "text": None}
    desktop.wait_closed(1)


def test_dismissing_closes_on_the_device_but_expiring_does_not(device, desktop):
    expired = device.push({"aps": {"alert": "one"}})
    dismissed = device.push({"aps": {"alert": "two"}})
    desktop.wait_shown(2)
    desktop.close_notification(1, EXPIRED)
    desktop.close_notification(2, DISMISSED)
    assert eventually(lambda: device.response(dismissed), what="the response")["kind"] == "closed"
    assert device.response(expired) is None
    assert [shown["apns_id"] for shown in device.device()["notifications"]] == [expired]


def test_signals_of_other_processes_are_ignored(device, desktop):
    id = device.push({"aps": {"alert": "Dinner is ready"}})
    desktop.wait_shown(1)
    desktop.pretend("ActionInvoked", 1, to=desktop.connection_of(device.process.pid))
    # The service's own signal follows the pretended one.
    desktop.close_notification(1, DISMISSED)
    assert eventually(lambda: device.response(id), what="the response")["kind"] == "closed"


def test_removing_an_app_closes_its_desktop_notifications(device, desktop):
    device.push({"aps": {"alert": "Dinner is ready"}})
    desktop.wait_shown(1)
    herald("agent", "remove", TOPIC, "--folder", device.folder)
    desktop.wait_closed(1)


def test_a_flood_shows_twenty(device, desktop):
    for number in range(25):
        device.push({"aps": {"alert": f"number {number}"}})
    shown = desktop.wait_shown(25)
    desktop.wait_closed(5)
    assert desktop.closed() == [1, 2, 3, 4, 5]
    assert [one.body for one in shown] == [f"number {number}" for number in range(25)]


def test_stopping_the_agent_closes_its_notifications(device, desktop):
    device.push({"aps": {"alert": "one"}})
    device.push({"aps": {"alert": "two"}})
    desktop.wait_shown(2)
    assert list(desktop.runtime.glob("herald-desktop.*"))
    assert device.stop() == 0
    assert desktop.closed() == [1, 2]
    assert list(desktop.runtime.glob("herald-desktop.*")) == []


def test_a_shown_notification_is_not_shown_again(agent, desktop):
    desktop.start()
    first = agent()
    first.wait_complaint("notifications are shown on the desktop")
    first.push({"aps": {"alert": "one"}})
    desktop.wait_shown(1)
    assert first.stop() == 0
    second = agent()
    second.wait_complaint("notifications are shown on the desktop")
    assert [shown["body"] for shown in second.device()["notifications"]] == ["one"]
    second.push({"aps": {"alert": "two"}})
    assert [shown.body for shown in desktop.wait_shown(2)] == ["one", "two"]


def test_a_notification_service_may_come_and_go(agent, desktop):
    device = agent()
    device.wait_complaint("the session bus has no notification service")
    device.push({"aps": {"alert": "one"}})
    desktop.start()
    device.wait_complaint("notifications are shown on the desktop")
    device.push({"aps": {"alert": "two"}})
    assert [shown.body for shown in desktop.wait_shown(1)] == ["two"]
    desktop.stop()
    device.wait_complaint("has disappeared")
    device.push({"aps": {"alert": "three"}})
    desktop.start("body")
    eventually(lambda: sum("are shown on the desktop" in line for line in device.complaints) == 2, what="the second coming")
    device.push({"aps": {"alert": "four & more"}})
    assert [(shown.body, shown.actions) for shown in desktop.wait_shown(1)] == [("four & more", [])]


def test_a_missing_session_bus_is_reported_and_the_agent_runs(agent, desktop):
    nowhere = {name: value for name, value in desktop.environment.items() if name != "DBUS_SESSION_BUS_ADDRESS"}
    device = agent(nowhere)
    device.wait_complaint("there is no session bus")
    assert len(device.complaints) == 1
    device.push({"aps": {"alert": "one"}})
    assert device.stop() == 0


def test_the_agent_survives_the_end_of_the_session_bus(device, desktop):
    device.push({"aps": {"alert": "one"}})
    desktop.wait_shown(1)
    desktop.bus.kill()
    device.wait_complaint("the session bus")
    device.push({"aps": {"alert": "two"}})
    assert device.stop() == 0
