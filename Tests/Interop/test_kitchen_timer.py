"""The app in Swift: remote, silent and local notifications, categories, languages and the badge, on two devices."""

import contextlib
import json
import os
import socket
import subprocess
import threading
import time

import pytest
from agents import Local
from kitchen import APP, BUNDLE, CODE, KITCHEN, Kitchen, Running
from parties import new_id
from scripted_service import Scripted, accepts
from service import PATIENCE, Service, eventually, herald

if not KITCHEN.exists():
    raise pytest.UsageError(f"{KITCHEN} is not there; run `make examples` first")


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kitchen")
    # More than three silent notifications an hour.
    service = Service(folder / "service", "--background-burst", "100").start()
    kitchen = Kitchen(service, folder)
    yield kitchen
    kitchen.close()
    service.close()


@pytest.fixture
def family(kitchen):
    """Both apps are on their devices, in the background; no timer runs, and nothing is on the screens."""
    eventually(kitchen.rests, what="a kitchen at rest")
    for cook in (kitchen.ann, kitchen.bob):
        cook.act("set", locked=False, clock=0, languages=["en"])
        cook.act("home")
        cook.act("clear")
    return kitchen


@pytest.fixture
def ann(family):
    return family.ann


@pytest.fixture
def bob(family):
    return family.bob


def start(cook, name, seconds):
    assert cook.app.ask("api/timers", {"name": name, "seconds": seconds}) == (200, {})


def near(rings, others):
    """Whether two devices ring for the same timers at the same times: each counts from when it heard of them.

    That may be a while after the app looked at its clock, if the machine pauses.
    """
    return rings.keys() == others.keys() and all(abs(rings[timer] - others[timer]) < 60 for timer in rings)


def timer_of(**members):
    return {"id": "tea-1", "name": "Tea", "ends": round(time.time()) + 3000, "isStopped": False, "revision": 0, **members}


def synchronize(server, body, code=CODE):
    """Reports a device to the family's server, without an app."""
    headers = {"authorization": f"Bearer {code}"} if code else {}
    return server.ask("api/sync", body, **headers)


def push(kitchen, cook, payload, push_type="alert", priority=10):
    """Sends with curl, as any other provider would; returns the `apns-id`."""
    id = new_id()
    result = subprocess.run(
        [
            "curl", "--silent", "--show-error", "--http2", "--cacert", kitchen.service.ca, "--cert", kitchen.certificate,
            "-H", f"apns-id: {id}", "-H", f"apns-push-type: {push_type}", "-H", f"apns-priority: {priority}",
            "-d", json.dumps(payload), "-w", "%{http_code}",
            f"https://localhost:{kitchen.service.listeners['api']}/3/device/{cook.device_token}",
        ],
        capture_output=True, text=True, timeout=PATIENCE,
    )
    assert result.stdout == "200", result
    return id


def test_a_timer_rings_on_every_device_and_its_buttons_reach_the_app(ann, bob):
    bob.act("set", languages=["de"])
    start(ann, "Eggs", 360)
    # On Bob's device by a silent notification, which woke the app there.
    (timer, ends), = ann.pending().items()
    assert near(bob.pending(), {timer: ends})
    eventually(lambda: (ann.icon["badge"], bob.icon["badge"]) == (1, 1), what="the number on both icons")
    # It rings without anybody but the device.
    bob.act("set", clock=600)
    shown = bob.shows("Eggs: fertig.")
    assert (shown["title"], shown["apns_id"]) == ("Die Zeit ist um", None)
    eventually(lambda: bob.icon["badge"] == 0, what="no number on the icon")
    assert [(action["identifier"], action["title"]) for action in shown["actions"]] == [("MORE", "Noch 5 Minuten"), ("STOP", "Stopp")]
    bob.act("act", notification=shown["id"], action="MORE")
    bob.app.says("the user pressed MORE")
    # Five minutes after it rang, by Bob's clock, and on Ann's device as well.
    later = bob.pending()[timer]
    assert later >= ends + 300
    eventually(lambda: near(ann.pending(), {timer: later}), what="five more minutes on Ann's device")
    bob.act("set", clock=1200)
    bob.act("act", notification=bob.shows("Eggs: fertig.")["id"], action="STOP")
    assert ann.pending(0) == {}
    eventually(lambda: ann.icon["badge"] == 0, what="an icon without a number")


class HeldNumber:
    """A socket in front of an agent's, for one app, which holds back a number above 0 that the app sets after it has scheduled."""

    def __init__(self, agent, folder):
        self.asked, self.released = threading.Event(), threading.Event()
        # The number that the app set last.
        self.number = None
        self.agent = Local(agent)
        (folder / "run").mkdir()
        here = os.open(folder / "run", os.O_DIRECTORY)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"/proc/self/fd/{here}/agent.sock")
        os.close(here)
        self.listener.listen()
        threading.Thread(target=self._requests, daemon=True).start()

    def _requests(self):
        app, _ = self.listener.accept()
        threading.Thread(target=self._answers, args=(app,), daemon=True).start()
        is_scheduled = False
        # The app goes first.
        with contextlib.suppress(ConnectionResetError):
            for line in app.makefile("rb"):
                request = json.loads(line)
                is_scheduled = is_scheduled or request["do"] == "schedule"
                if request["do"] == "badge":
                    self.number = request["badge"]
                    if self.number > 0 and is_scheduled:
                        self.asked.set()
                        self.released.wait(PATIENCE)
                self.agent.socket.sendall(line)

    def _answers(self, app):
        with contextlib.suppress(BrokenPipeError):
            for line in self.agent.file:
                app.sendall(line.encode())

    def close(self):
        self.listener.close()
        self.agent.socket.close()


def test_a_timer_that_rings_before_the_app_has_set_the_number_leaves_none(bob, tmp_path):
    bob.app.close()
    held = HeldNumber(bob.folder, tmp_path)
    app = Running("app", "--device", tmp_path).start()
    try:
        app.says("got a device token")
        eventually(lambda: held.number == 0, what="the number of an app without timers")
        assert app.ask("api/timers", {"name": "Tea", "seconds": 60}) == (200, {})
        assert held.asked.wait(PATIENCE)
        bob.act("set", clock=120)
        bob.shows("Tea is ready.")
        held.released.set()
        eventually(lambda: (held.number, bob.icon["badge"]) == (0, 0), what="no number on the icon")
    finally:
        app.close()
        held.close()
        bob.app.start(bob.app.port)


def test_a_push_of_any_provider_has_the_buttons_that_the_app_registered(kitchen, ann, bob):
    start(bob, "Rice", 3000)
    (timer,) = bob.pending()
    bob.act("lock")
    push(kitchen, bob, {"aps": {"alert": {"title": "Rice", "body": "It smells burnt."}, "category": "TIMER"}, "timer": timer})
    shown = bob.shows("It smells burnt.")
    bob.act("act", notification=shown["id"], action="STOP")
    assert bob.pending(0) == {} and ann.pending(0) == {}


def test_a_silent_push_wakes_the_app(kitchen, bob):
    id = push(kitchen, bob, {"aps": {"content-available": 1}}, push_type="background", priority=5)
    bob.app.says("woken by a silent notification")
    # The family has nothing new.
    record = eventually(lambda: (seen := bob.shown(id))["background"] and seen, what="the outcome")
    assert (record["background"], record["shown"]) == ("no data", False)


def test_the_language_reaches_the_provider(kitchen, ann, bob):
    eventually(lambda: kitchen.member(bob).get("languages") == ["en"], what="English at the server")
    assert kitchen.member(bob)["token"] == bob.device_token
    bob.act("set", languages=["fr", "en"])
    eventually(lambda: kitchen.member(bob)["languages"] == ["fr", "en"], what="French at the server")
    assert ann.app.ask("api/dinner", {}) == (200, {"told": 1})
    assert bob.shows("À table !")["title"] == "Le dîner est prêt"
    assert ann.device["notifications"] == [], "the cook knows"
    # In the foreground the app gets it itself.
    bob.act("clear")
    bob.act("open", topic=APP)
    assert ann.app.ask("api/dinner", {}) == (200, {"told": 1})
    eventually(lambda: bob.app.ask("api/kitchen")[1].get("news") == "Le dîner est prêt", what="the page")
    assert bob.device["notifications"] == []


def test_a_kitchen_without_its_server_goes_on(kitchen, ann, bob):
    port = kitchen.server.port
    assert kitchen.server.stop() == 0
    start(ann, "Bread", 2400)
    rings = ann.pending()
    status, answer = ann.app.ask("api/dinner", {})
    assert (status, "does not answer" in answer["error"]) == (502, True)
    kitchen.server.start(port)
    eventually(lambda: near(bob.pending(), rings), what="the timer on Bob's device")


def test_timers_that_cannot_be_kept_ring_and_are_kept_later(ann):
    start(ann, "Milk", 1200)
    assert len(ann.pending()) == 1
    file = ann.folder / "containers" / APP / "timers.json"
    file.unlink()
    file.mkdir()
    try:
        start(ann, "Pasta", 600)
        assert len(ann.pending(2)) == 2
        trouble = eventually(lambda: ann.app.ask("api/kitchen")[1].get("trouble"), what="the trouble on the page")
        assert "timers.json cannot be written" in trouble
    finally:
        file.rmdir()
    # Without another change.
    eventually(lambda: file.is_file() and "Pasta" in file.read_text(), what="the timers in the file")
    eventually(lambda: "trouble" not in ann.app.ask("api/kitchen")[1], what="a page without trouble")


def test_a_timer_with_the_most_changes_can_be_changed(kitchen, ann, bob):
    body = {"device": "carol", "languages": [], "timers": [timer_of(revision=1_000_000)]}
    assert synchronize(kitchen.server, body)[0] == 200
    assert list(ann.pending()) == list(bob.pending()) == ["tea-1"]
    assert ann.app.ask("api/timers/tea-1/STOP", {}) == (200, {})
    assert ann.pending(0) == bob.pending(0) == {}


def test_everybody_is_told_at_once(tmp_path, trust):
    ca, certificate, client = trust

    def answers_both(connection):
        for request in [connection.request(), connection.request()]:
            connection.accept(*request)
        accepts(connection)

    with Scripted(certificate, [answers_both]) as push_service:
        server = Running(
            "server", "--certificate", client, "--service", f"localhost:{push_service.port}", "--ca", ca,
            "--file", tmp_path / "family.json",
        ).start()
        try:
            for device, token in (("ann", "aa" * 32), ("bob", "bb" * 32)):
                body = {"device": device, "token": token, "languages": [], "timers": []}
                assert synchronize(server, body)[0] == 200
            answer = server.ask("api/dinner", {"device": "carol"}, authorization=f"Bearer {CODE}")
            assert answer == (200, {"told": 2})
        finally:
            server.close()


def test_a_button_that_was_pressed_while_the_app_was_away_reaches_it(ann, bob):
    start(bob, "Soup", 60)
    (timer,) = bob.pending()
    bob.app.close()
    bob.act("set", clock=120)
    bob.act("act", notification=bob.shows("Soup is ready.")["id"], action="MORE")
    bob.app.start(bob.app.port)
    bob.app.says("the user pressed MORE")
    assert list(bob.pending()) == [timer]


def test_the_app_has_a_page_on_the_screen(ann, chromium):
    chromium.open(ann.url)
    ann.act("open", topic=APP)
    page = chromium
    page.driver.switch_to.frame(page.one(".app-frame"))
    page.one("#name").send_keys("<b>Tea</b>")
    page.one("#start-words").click()
    page.one("#timers strong", "<b>Tea</b>")
    assert len(ann.pending()) == 1
    # The page makes the buttons anew when the app has synchronized the timer: a click on a former one is tried again.
    page.until(lambda: page.one("#timers li button:last-child").click() is None)
    page.gone("#timers li")
    assert ann.pending(0) == {} and page.complaints() == []
    page.driver.switch_to.default_content()


@pytest.mark.parametrize(
    "path, body, headers, status, words",
    [
        ("api/timers", {"name": "x" * 65, "seconds": 1}, {}, 400, '"name" must be'),
        ("api/timers", {"name": "a\u0007", "seconds": 1}, {}, 400, '"name" must be'),
        ("api/timers", {"name": "Tea", "seconds": 0}, {}, 400, '"seconds" must be'),
        ("api/timers", {"name": "Tea"}, {}, 400, "README.md"),
        ("api/timers", b"[" * 70000, {}, 413, "longer than 65536 bytes"),
        ("api/timers", {"name": "Tea", "seconds": 60}, {"content_type": "text/plain"}, 415, "application/json"),
        ("api/timers", {"name": "Tea", "seconds": 60}, {"Host": "evil.example"}, 421, "localhost"),
        ("api/timers/nothing/STOP", {}, {}, 400, "no timer nothing"),
        ("api/timers/nothing/FLY", {}, {}, 404, "no button FLY"),
    ],
)
def test_wrong_requests_are_explained(ann, path, body, headers, status, words):
    answer, said = ann.app.ask(path, body, **headers)
    assert (answer, words in said["error"]) == (status, True), said


@pytest.mark.parametrize(
    "body, code, status, words",
    [
        ({}, None, 401, "say the family's code"),
        ({}, "pepper", 401, "say the family's code"),
        ({}, CODE, 400, "README.md"),
        ({"device": "d", "token": "x", "languages": [], "timers": []}, CODE, 400, '"token" must be'),
        ({"device": "", "languages": [], "timers": []}, CODE, 400, '"device" must be'),
        ({"device": "d", "languages": ["x"] * 21, "timers": []}, CODE, 400, '"languages" must be'),
        ({"device": "d", "languages": [], "timers": [timer_of(revision=2**63 - 1)]}, CODE, 400, '"revision" of a timer must be'),
        ({"device": "d", "languages": [], "timers": [timer_of(revision=-1)]}, CODE, 400, '"revision" of a timer must be'),
        ({"device": "d", "languages": [], "timers": [timer_of(id="a\u0007")]}, CODE, 400, '"id" of a timer must be'),
        ({"device": "d", "languages": [], "timers": [timer_of(id="x" * 65)]}, CODE, 400, '"id" of a timer must be'),
        ({"device": "d", "languages": [], "timers": [timer_of(name="")]}, CODE, 400, '"name" must be'),
    ],
)
def test_the_server_explains_wrong_requests(kitchen, body, code, status, words):
    answer, said = synchronize(kitchen.server, body, code)
    assert (answer, words in said["error"]) == (status, True), said


def test_a_second_app_on_the_device_ends_the_first_one(tmp_path, kitchen, ann):
    second = Running("app", "--device", ann.folder).start()
    second.says("connected to the device")
    assert ann.app.process.wait(timeout=PATIENCE) == 1
    second.close()
    ann.app.start(ann.app.port)
    ann.app.says("got a device token")


def test_the_app_passes_the_check(tmp_path):
    herald("check", "--bundle", BUNDLE, "--strict")
    payload = tmp_path / "payload.json"
    payload.write_text(json.dumps({
        "aps": {"alert": {"title-loc-key": "TIMER_TITLE", "loc-key": "TIMER_ENDED", "loc-args": ["Eggs"]}, "badge": 0, "sound": "default"},
    }))
    herald("check", payload, "--bundle", BUNDLE, "--strict")
