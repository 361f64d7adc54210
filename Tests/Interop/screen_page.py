"""The screen's page in a real browser, on a simulated device whose content the test sets and whose actions it records.

The page's files are those that the agent serves, with its policy for contents, so that what a browser refuses is refused here.
"""

import copy
import json
import os
import pathlib
import queue
import re
import tempfile
import time
import urllib.parse

import pytest
from made_up_server import MadeUpRequest, MadeUpServer
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service as Driver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "Sources"
RESOURCES = SOURCES / "Device/HeraldScreen/Resources"
# Files of all pages.
SHARED = SOURCES / "Shared/HeraldWeb/Resources"
# The time limit for expected changes, long enough for a busy machine.
PATIENCE = 60
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8"}
POLICY = "; ".join((RESOURCES / "content-security-policy.txt").read_text().split("\n")).strip("; ")

APP = {
    "topic": "com.example.pushchat", "name": "PushChat", "icon": False, "badge": 0, "state": "background",
    "environment": "production", "token": "a1" * 32, "permission": {"alerts": True, "badges": True, "sounds": True}, "style": "banner",
    "wants": ["alert", "badge", "sound"], "refused": None, "screen_url": None, "opened_with": None, "received": None,
    "action": None, "pending": [], "launch_image": None, "launch_picture": None,
}

NOTIFICATION = {
    "id": "n1", "apns_id": "2f7ca8f4-0000-4000-8000-000000000001", "topic": "com.example.pushchat", "app": "PushChat",
    "title": None, "subtitle": None, "body": "Message received from Bob", "language": "en", "time": 0.0,
    "place": "banner", "style": "banner", "thread": None, "interruption": "active", "buttons": ["Close", "View"], "slider": None,
    "actions": [], "replaced": False,
}

ACTION = {
    "identifier": "yes", "title": "Yes", "foreground": False, "destructive": False, "authentication_required": False,
    "text_input": False,
}

# A display record, as `herald agent shown --json` prints it.
RECORD = {
    "apns_id": "2f7ca8f4-0000-4000-8000-000000000001", "topic": "com.example.pushchat",
    "received": "2026-11-23T07:00:00.000Z", "push_type": "alert", "priority": 10,
    "payload": '{"aps":{"alert":"Message received from Bob"}}', "languages": ["en"], "language": "en",
    "state": "background", "locked": False, "focus": False, "muted": False, "shown": True, "place": "banner",
    "title": None, "subtitle": None, "body": "Message received from Bob", "buttons": ["Close", "View"], "slider": None,
    "actions": [], "badge": {"before": 0, "after": 0}, "sound": None, "critical": False, "volume": None,
    "launch_image": None, "background_launch": False, "delivered_to_app": False, "thread": None, "category": None,
    "interruption": "active", "replaces": None, "activity": None, "because": [], "extension": None, "background": None,
    "replaced_by": None, "response": None,
}

ACTIVITY = {
    "id": "a1", "topic": "com.example.pushchat", "app": "PushChat", "state": "active", "content": {}, "attributes": {},
    "title": None, "body": None, "stale_date": None, "dismissal_date": None,
}


def app(**changes):
    return {**copy.deepcopy(APP), **changes}


def notification(**changes):
    return {**copy.deepcopy(NOTIFICATION), "time": time.time(), **changes}


def action(**changes):
    return {**ACTION, **changes}


def record(**changes):
    return {**copy.deepcopy(RECORD), **changes}


def words(language="en"):
    """The device's own words, from the table that the agent has."""
    column = ["en", "fr", "de", "es", "ja", "zh-Hans"].index(language)
    table = (SOURCES / "Device/HeraldPhone/Words/DeviceWords.swift").read_text().split("static let table:")[1]
    rows = re.findall(r"\.(\w+): \[(.*?)\]", table, re.DOTALL)
    snake = lambda name: re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    return {"language": language, **{snake(name): re.findall('"(.*?)"', texts)[column] for name, texts in rows}}


def activity(**changes):
    return {**copy.deepcopy(ACTIVITY), **changes}


def device(**changes):
    """A device with one app and nothing on it."""
    return {
        "device": "kitchen-phone", "service": "localhost:5223", "time": time.time(),
        "connection": {"state": "connected", "reason": None, "retry_in": None}, "locked": False, "languages": ["en"],
        "available_languages": ["de", "en", "fr"], "network": True, "saving": False, "muted": False, "focus": False,
        "foreground": None, "apps": [app()], "questions": [], "notifications": [], "banner": None, "activities": [],
        "sounds": [], "log": [], "lock_alert": None, "clock": 0, "time_zone": "GMT", "display_log_revision": 0, "words": words(), **changes,
    }


class FakeAgent(MadeUpServer):
    """Serves the page and a device with the state that the test last set."""

    def __init__(self):
        self.snapshot = device()
        self.files = {}
        self.records = []
        self.send_line = None
        self.refusal = None
        self.deeds = queue.Queue()
        super().__init__(Request)
        self.url = f"http://127.0.0.1:{self.port}/"

    def greeting(self):
        return [self.snapshot]

    def show(self, **changes):
        """Changes the device, as everybody who watches it sees."""
        self.snapshot = {**self.snapshot, "time": time.time(), **changes}
        self.tell_all(self.snapshot)

    def note(self, *records):
        """Writes or changes records of the display log, and tells the page."""
        known = {entry["apns_id"]: entry for entry in [*self.records, *records]}
        self.records = list(known.values())
        self.show(display_log_revision=self.snapshot["display_log_revision"] + 1)

    def done(self, timeout=PATIENCE):
        """The next thing that the user did."""
        return self.deeds.get(timeout=timeout)


class Request(MadeUpRequest):
    policy = POLICY

    def do_GET(self):
        path = urllib.parse.unquote(self.path)
        if path == "/api/events":
            return self.events()
        if path == "/api/send":
            return self.reply(200, "application/json", json.dumps({"line": self.service.send_line}).encode())
        if path.startswith("/api/shown?"):
            limit = int(urllib.parse.parse_qs(path.partition("?")[2])["limit"][0])
            revision = self.service.snapshot["display_log_revision"]
            log = {"revision": revision, "count": len(self.service.records), "records": self.service.records[-limit:]}
            return self.reply(200, "application/json", json.dumps(log).encode())
        if path in self.service.files:
            kind = TYPES.get(pathlib.PurePath(path).suffix, "application/octet-stream")
            return self.reply(200, kind, self.service.files[path])
        name = "index.html" if path == "/" else path.removeprefix("/assets/")
        file = SHARED / name if (SHARED / name).is_file() else RESOURCES / name
        if (path == "/" or path.startswith("/assets/")) and file.is_file():
            return self.reply(200, TYPES[file.suffix], file.read_bytes())
        return self.reply(404, "application/json", b'{"error":"there is nothing at this path"}')

    def do_POST(self):
        deed = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.service.refusal:
            return self.reply(409, "application/json", json.dumps({"error": self.service.refusal}).encode())
        self.service.deeds.put(deed)
        self.send_response(204)
        self.end_headers()
        return None

    def events(self):
        self.stream(lambda snapshot: f"event: device\ndata: {json.dumps(snapshot)}\n\n")


class Page:
    """A browser that shows a page."""

    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        self._profile = tempfile.TemporaryDirectory(prefix="herald-chromium-", ignore_cleanup_errors=True)
        for argument in (
            "--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--lang=en-GB", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
            "--disable-features=OptimizationHints,MediaRouter,Translate", "--mute-audio",
            f"--user-data-dir={self._profile.name}",
            # Requests of a page to other hosts fail, and the console reports them.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
        ):
            options.add_argument(argument)
        if os.geteuid() == 0:
            # Chromium's sandbox does not work for root, the usual user in containers.
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # The path keeps selenium from looking for a driver elsewhere.
        self.driver = webdriver.Chrome(options=options, service=Driver("/usr/bin/chromedriver"))
        self.driver.set_script_timeout(PATIENCE)

    def close(self):
        self.driver.quit()
        self._profile.cleanup()

    def open(self, url, width=1366, height=860, dark=False, reduced_motion=True, scale=1, ready="#screen"):
        """Opens the page, and waits until the device is drawn."""
        command = self.driver.execute_cdp_cmd
        features = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce" if reduced_motion else "no-preference",
        }
        command("Emulation.setEmulatedMedia", {"features": [{"name": n, "value": v} for n, v in features.items()]})
        command(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 720},
        )
        # Late complaints of the previous page do not count for this one.
        self.driver.get("about:blank")
        self.complaints()
        self.driver.get(url)
        self.one(ready)
        return self

    def keep(self):
        """Keeps what the page, as long as it is not opened again, would take away after two seconds or more."""
        self.run("const wait = setTimeout; window.setTimeout = (work, time) => wait(work, time >= 2000 ? 1e9 : time)")

    def one(self, selector, text=None):
        """The element that is there soon; the first of several, or the first with this text or accessible name."""
        def find(_):
            for element in self.driver.find_elements(By.CSS_SELECTOR, selector):
                if text is None or text in (element.text, element.accessible_name):
                    return element
            return None

        words = f"{selector} with {text!r}" if text else selector
        return WebDriverWait(self.driver, PATIENCE, 0.05, [StaleElementReferenceException]).until(find, f"no {words} came")

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def until(self, condition, words="it did not come"):
        """Waits until a function returns a true value."""
        return WebDriverWait(self.driver, PATIENCE, 0.05, [StaleElementReferenceException]).until(lambda _: condition(), words)

    def gone(self, selector):
        self.until(lambda: not self.all(selector), f"{selector} stayed")

    def press(self, *keys):
        """Presses keys where the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def complaints(self):
        """The new complaints of the browser's console: errors, and violations of the policy."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests."""
    page = Page()
    yield page
    page.close()


@pytest.fixture
def agent():
    """A simulated device."""
    agent = FakeAgent()
    yield agent
    agent.stop()


@pytest.fixture
def page(chromium, agent):
    """The page of the simulated device; the test fails on any complaint of the console."""
    chromium.open(agent.url)
    yield chromium
    assert chromium.complaints() == []
