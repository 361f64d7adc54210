"""From `curl` to the screen: Chromium shows the notifications of a running device, and the user's actions reach it."""

import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from agents import MONOPOLY, Agent, Local
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from service import PATIENCE, herald
from sound_files import aiff

APP = "com.example.monopoly"
FILES = pathlib.Path(__file__).parent.parent / "Payloads" / "files"
EXPECTED = {
    expectation["file"]: expectation["present"]
    for expectation in json.loads((FILES.parent / "expectations.json").read_text())
    if expectation["name"].startswith("example ")
}
STEPS = [(file, step) for file, steps in EXPECTED.items() for step in steps]


class Phone(Agent):
    """A device with Monopoly.app and a screen."""

    def start(self, *options):
        bundle = self.folder.parent / "Monopoly.app"
        shutil.copytree(MONOPOLY, bundle, dirs_exist_ok=True)
        for sound in ("chime.aiff", "bingbong.aiff"):
            (bundle / sound).write_bytes(aiff([0, 12000, 0, -12000] * 800))
        super().start("--app", bundle, "--allow", "alert,badge,sound", "--screen", "0", *options)
        self.url = self.next("screen")["url"]
        self.device_token = self.token(APP)
        # A banner would go away while a busy machine still draws it.
        self.act(do="permit", topic=APP, allow=["alert", "badge", "sound"], style="alert")
        return self

    def push(self, service, file):
        """Sends a payload with curl, and returns its apns-id."""
        done = subprocess.run(
            [
                "curl", "--silent", "--show-error", "--include", "--http2", "--cacert", service.ca,
                "--cert", service.provider_certificate(APP), "-H", "apns-push-type: alert", "--data-binary", f"@{FILES / file}",
                f"https://localhost:{service.listeners['api']}/3/device/{self.device_token}",
            ],
            capture_output=True, text=True, timeout=PATIENCE, check=True,
        )
        head = done.stdout.splitlines()
        assert head[0].startswith("HTTP/2 200"), done.stdout
        return next(line.split(": ")[1] for line in head if line.startswith("apns-id"))

    def ask(self, path, body=None, **headers):
        """One request of the screen's API: its status, and its answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.loads(refusal.read())

    def act(self, **action):
        status, answer = self.ask("api/device", action)
        assert status == 204, answer


@pytest.fixture(scope="module")
def phone(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("phone")
    phone = Phone(shared, folder / "device", shared.device("monopoly-phone")[0]).start()
    yield phone
    assert phone.stop() == 0


@pytest.fixture
def screen(phone, chromium):
    """The page of a device on which nothing is shown, at its home screen."""
    phone.act(do="unlock")
    phone.act(do="home")
    phone.act(do="clear")
    chromium.open(phone.url)
    chromium.one(".home-screen")
    yield chromium
    assert chromium.complaints() == []


@pytest.mark.parametrize("file, wanted", STEPS, ids=[f"{file.split('-')[1]}-{step['language']}-{step['state']}" for file, step in STEPS])
def test_the_examples_of_the_guide_work(phone, shared, screen, file, wanted):
    page = screen
    phone.act(do="set", languages=[wanted["language"]])
    if wanted["state"] == "locked":
        phone.act(do="lock")
        page.one(".lock-screen")
    if wanted["state"] == "foreground":
        phone.act(do="open", topic=APP)
        page.one(".app-screen")
    badge = badge_of(page)
    sounds = len(phone.ask("api/device")[1]["sounds"])
    id = phone.push(shared, file)
    status, record = phone.ask(f"api/shown/{id}?wait={PATIENCE}")
    assert status == 200
    if wanted.get("shown") is False:
        assert (record["shown"], record["delivered_to_app"]) == (False, True)
        assert page.all(".card") == []
        return
    card = page.one(".banner .card" if wanted["state"] == "background" else ".lock-list .card")
    for part in ("title", "body"):
        if part in wanted:
            assert card.find_element("css selector", f".card-{part}").text == wanted[part] == record[part]
    if "buttons" in wanted:
        # The buttons Close and View; a category's own are a row above them.
        rows = page.all(".banner .deeds")
        assert ([deed.text for deed in rows[-1].find_elements("css selector", ".deed")] if rows else []) == wanted["buttons"]
    if wanted["state"] == "locked":
        page.one(".slider input").send_keys(Keys.ENTER)
        page.one(".app-screen")
        assert page.one(".payload").text.startswith("{")
        phone.act(do="home")
    if "badge" in wanted:
        expected = badge if wanted["badge"] == "unchanged" else wanted["badge"]
        page.until(lambda: badge_of(page) == expected)
    if "sound" in wanted:
        assert record["sound"] == wanted["sound"]
        heard = phone.ask("api/device")[1]["sounds"]
        if wanted["sound"]:
            assert heard[-1]["name"] == wanted["sound"]
            page.one(".history .lines bdi", wanted["sound"])
        else:
            assert len(heard) == sounds


def badge_of(page):
    badges = page.all(".app .badge")
    return int(badges[0].text) if badges else 0


def test_the_button_of_the_guides_category_reaches_the_app(phone, shared, screen):
    phone.act(do="set", languages=["fr"])
    local = Local(phone.folder)
    assert local.ask("register", topic=APP)["ok"]
    assert local.ask("state", topic=APP, state="background")["ok"]
    id = phone.push(shared, "example-5-category-with-its-own-button.json")
    screen.one(".banner .deed", "Répondre").click()
    screen.one(".reply input").send_keys("À ce soir", Keys.ENTER)
    event = local.event("notification")
    assert (event["why"], event["action"], event["text"], event["apns_id"]) == ("action", "reply", "À ce soir", id.lower())
    assert event["payload"]["acme-message"] == "message123456"
    screen.gone(".banner")
    assert phone.ask(f"api/shown/{id}")[1]["response"] == {"kind": "acted", "action": "reply", "text": "À ce soir"}
    local.close()


def test_view_opens_the_app_but_close_does_not(phone, shared, screen):
    phone.act(do="set", languages=["en"])
    id = phone.push(shared, "example-2-title-body-localised-button.json")
    screen.one(".banner .deed", "Play").click()
    screen.until(lambda: '"acme1": "bar"' in screen.one(".payload").text)
    screen.gone(".banner")
    screen.until(lambda: phone.ask(f"api/shown/{id}")[1]["response"] is not None)
    assert phone.ask(f"api/shown/{id}")[1]["response"]["kind"] == "opened"
    screen.gone(".launch-screen")
    screen.one(".home-bar").click()
    screen.one(".home-screen")
    id = phone.push(shared, "example-1-plain-text-and-custom-array.json")
    screen.one(".banner .deed", "Close").click()
    screen.gone(".banner")
    screen.until(lambda: (phone.ask(f"api/shown/{id}")[1]["response"] or {}).get("kind") == "closed")


def test_the_screen_shows_a_network_loss_and_return(phone, shared, screen):
    screen.one("[role=switch]", "Network").click()
    screen.until(lambda: "Connected" != screen.one(".connection .state").text)
    id = phone.push(shared, "example-3-text-badge-sound.json")
    assert phone.ask(f"api/shown/{id}")[0] == 404
    screen.one("[role=switch][aria-checked=false]", "Network").click()
    assert screen.one(".banner .card-body").text == "You got your emails."
    assert phone.ask(f"api/shown/{id}?wait={PATIENCE}")[0] == 200


def test_unlocking_leads_into_the_app_of_the_alert(phone, shared, screen):
    phone.act(do="lock")
    id = phone.push(shared, "example-1-plain-text-and-custom-array.json")
    screen.one(".lock-list .card")
    # By the switch, not by the slider.
    screen.one("[role=switch][aria-checked=true]", "Locked").click()
    assert '"acme2"' in screen.one(".opened .payload").text
    screen.until(lambda: (phone.ask(f"api/shown/{id}")[1]["response"] or {}).get("kind") == "opened")
    # Locked again, there is no alert any more.
    phone.act(do="home")
    phone.act(do="lock")
    screen.one(".slider input", "slide to unlock").send_keys(Keys.ENTER)
    screen.one(".home-screen")


def test_the_devices_own_words_follow_the_user(phone, shared, screen):
    phone.act(do="set", languages=["ja", "en"])
    phone.act(do="lock")
    screen.until(lambda: screen.one(".slider-words").text == "スライドでロック解除")
    id = phone.push(shared, "example-1-plain-text-and-custom-array.json")
    screen.until(lambda: screen.one(".slider-words").text == "表示")
    assert phone.ask(f"api/shown/{id}")[1]["slider"] == "表示"
    assert screen.one(".slider input").get_attribute("lang") == screen.one("#screen").get_attribute("lang") == "ja"
    # They change with the language; an app's own word is in a language of the app.
    phone.act(do="set", languages=["es"])
    screen.until(lambda: screen.one(".slider-words").text == "Ver")
    phone.push(shared, "example-2-title-body-localised-button.json")
    screen.until(lambda: screen.one(".slider-words").text == "Play")
    assert screen.one(".slider-words").get_attribute("lang") == "en"
    status, answer = phone.ask("api/device", {"do": "set", "languages": ["es", "xx-nonsense!"]})
    assert (status, answer["error"]) == (409, '"xx-nonsense!" is not a language code: write one like de or pt-BR')
    phone.act(do="set", languages=["en"])


def test_the_user_cancels_a_pending_notification_and_chooses_a_style(phone, screen):
    alert = {"title": "Tea", "body": "is ready"}
    phone.act(do="schedule", topic=APP, notification="tea", payload={"aps": {"alert": alert}}, after=3600)
    screen.one(".app-list summary").click()
    assert screen.one(".pending-words").text.startswith("Tea: is ready\n")
    screen.one(".pending .small", "Cancel tea").click()
    screen.gone(".pending")
    assert phone.ask("api/device")[1]["apps"][0]["pending"] == []
    Select(screen.one(".style select")).select_by_visible_text("Banner")
    screen.until(lambda: phone.ask("api/device")[1]["apps"][0]["style"] == "banner")
    assert phone.ask("api/device")[1]["apps"][0]["permission"] == {"alerts": True, "badges": True, "sounds": True}
    phone.act(do="permit", topic=APP, allow=["alert", "badge", "sound"], style="alert")


def test_the_log_outlives_the_agent(shared, chromium, tmp_path):
    phone = Phone(shared, tmp_path / "device", shared.device("forgetful")[0]).start()
    ids = [phone.push(shared, f"example-{file}.json").lower() for file in ("1-plain-text-and-custom-array", "3-text-badge-sound")]
    for id in ids:
        phone.shown(id)
    phone.kill()
    phone.start()
    log = phone.ask("api/shown?limit=10")[1]
    assert [record["apns_id"] for record in log["records"]] == ids
    assert {record["priority"] for record in log["records"]} == {10}
    sent = (FILES / "example-1-plain-text-and-custom-array.json").read_text()
    assert log["records"][0]["payload"] == sent
    page = chromium.open(phone.url)
    page.until(lambda: [facts.text for facts in page.all(".entry-facts")] == [f"alert · priority 10 · {id[:8]}" for id in ids])
    page.one(".entry:has(.entry-facts) summary").click()
    assert '"acme2": [' in page.one(".entry-more .payload").text
    phone.act(do="clear")
    page.until(lambda: "The user closed" in page.one(".entry-more").text.replace("\n", " "))
    line = phone.ask("api/send")[1]["line"]
    assert line.startswith("curl ") and line.endswith(":2197/3/device/{token}") and "{topic}" in line
    assert phone.stop() == 0


def test_the_sounds_of_a_bundle_are_served_and_playable(phone, screen):
    for name in ("chime.aiff", "bingbong.aiff"):
        found = screen.driver.execute_async_script(
            """
            const [name, done] = arguments;
            Promise.all([import("/assets/pcm.js"), fetch(`/api/apps/com.example.monopoly/sounds/${name}`)])
              .then(async ([{ decode }, answer]) => {
                const sound = decode(new DataView(await answer.arrayBuffer()));
                done([answer.headers.get("content-type"), sound.channels.length, sound.channels[0].length]);
              }, (error) => done(String(error)));
            """,
            name,
        )
        assert found == ["audio/aiff", 1, 3200]


def test_other_origins_cannot_use_the_device(phone):
    assert phone.ask("api/device", {"do": "lock"}, origin="http://example.com")[0] == 403
    assert phone.ask("api/device", {"do": "lock"}, content_type="text/plain")[0] == 415
    assert phone.ask("api/device", host="example.com")[0] == 421
    status, answer = phone.ask("api/device", {"do": "tap", "id": "none"})
    assert status == 409 and answer["error"]
    assert phone.ask("api/shown/nothing")[0] == 404


def test_curl_gets_events_until_the_agent_stops(shared, tmp_path):
    phone = Phone(shared, tmp_path / "device", shared.device("short-lived")[0]).start()
    watcher = subprocess.Popen(["curl", "-sN", f"{phone.url}api/events"], stdout=subprocess.PIPE, text=True)
    assert watcher.stdout.readline() == "event: device\n"
    first = json.loads(watcher.stdout.readline().removeprefix("data: "))
    assert first["apps"][0]["topic"] == APP
    assert phone.stop() == 0
    assert watcher.wait(timeout=PATIENCE) == 0


def test_clients_that_read_nothing_do_not_keep_the_agent(shared, tmp_path):
    phone = Phone(shared, tmp_path / "device", shared.device("unread")[0]).start()
    place = urllib.parse.urlsplit(phone.url)
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((place.hostname, place.port))
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                for _ in range(10_000):
                    client.send(f"GET / HTTP/1.1\r\nhost: {place.netloc}\r\n\r\n".encode() * 20)
        assert phone.stop() == 0


def test_a_failure_to_open_the_screen_is_explained(phone, shared, tmp_path):
    taken = phone.url.rstrip("/").rsplit(":", 1)[1]
    common = ["agent", "run", "--identity", shared.device("second")[0], "--ca", shared.ca, "--app", APP,
              "--service", "127.0.0.1", "--device-port", str(shared.listeners['device'])]
    for options, words in (
        (["--screen", taken], "is in use by another program"),
        (["--screen", "0", "--screen-host", "192.0.2.1"], "choose another --screen-host"),
    ):
        failed = herald(*common, *options, check=False)
        assert failed.returncode == 1 and words in failed.stderr, failed.stderr
    wrong = herald(*common, "--screen", "70000", check=False)
    assert wrong.returncode == 64 and "--screen is a port" in wrong.stderr
