"""Ways of people through the console by keyboard alone: at most twelve keystrokes each, from the page Now of the real service."""

import json
import re
import subprocess

import pytest
from agents import curl
from mqtt_device import Identity
from provider import Provider
from selenium.webdriver.common.keys import Keys
from service import PATIENCE, TOPIC, Service, eventually, herald

MOST = 12


class Hands:
    """Presses keys in a browser, and counts them; a text that is typed or pasted counts as one."""

    def __init__(self, page):
        self.page = page
        self.strokes = 0

    def press(self, *keys):
        self.strokes += len(keys)
        self.page.press(*keys)

    def search(self, text, *after):
        """Goes to the search field, and searches."""
        self.press("/")
        self.page.until(lambda: self.page.run("return document.activeElement.matches('input[type=search]')"))
        self.press(text, Keys.ENTER, *after)

    def open_row(self):
        """Opens the first row of the page."""
        self.page.one("main [data-row]")
        self.press("j")
        self.page.until(lambda: self.page.run("return document.activeElement.matches('[data-row]')"))
        self.press(Keys.ENTER)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A service that these tests have for themselves."""
    service = Service(tmp_path_factory.mktemp("ways") / "data").start()
    service.certificate = service.provider_certificate(TOPIC)
    yield service
    service.close()


@pytest.fixture
def hands(chromium, place):
    """Somebody at the page Now of that service."""
    yield arrive(chromium, herald("console", "--data", place.data, "--name", "Ada").stdout.strip())
    assert [one for one in chromium.complaints() if "Failed to load resource" not in one] == []


def arrive(chromium, link):
    page = chromium.open(link, ready=".tile")
    page.until(lambda: "Ada" in page.one(".who").text or "demo" in page.one(".who").text)
    page.run("window.copied = []; navigator.clipboard.writeText = async (text) => { copied.push(text) }")
    return Hands(page)


def summary(page):
    return page.one(".summary-state").text.lower()


@pytest.mark.slow
def test_a_newcomer_sees_the_first_push_and_its_end(fresh, chromium):
    """`make run` prints a link and a line with curl: no more is needed."""
    service = fresh("--demo").start()
    line = eventually(lambda: next((line for line in service.lines if "curl " in line), None), what="the line with curl")
    link = next(re.search(r"http://\S+/#login=\S+", line)[0] for line in service.lines if "#login=" in line)
    hands = arrive(chromium, link)
    page = hands.page
    command = f"{line[line.index('curl ') :]} --silent --write-out '%{{http_code}}'"
    answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE)
    assert answer.stdout.endswith("200"), answer.stdout + answer.stderr
    page.until(lambda: any("delivered" in row.text and "pushchat" in row.text for row in page.all("main tr")))
    hands.open_row()
    page.until(lambda: page.all(".summary-state") and summary(page).startswith("delivered"))
    # Three, if the device took a moment to acknowledge.
    assert len(page.all(".life li")) >= 2
    assert hands.strokes <= MOST


def test_the_identifier_of_a_push_leads_to_what_became_of_it(hands, place):
    page = hands.page
    device = Identity(place, "away")
    token = device.stay().register()
    device.close()
    id = curl(place, place.certificate, token, b'{"aps":{"alert":"hello"}}', topic=TOPIC)
    hands.search(id)
    page.until(lambda: page.all(".summary-state") and summary(page).startswith("stored"))
    assert page.one(".summary p:nth-of-type(2)").text
    assert hands.strokes <= MOST


def test_a_tester_waits_for_a_caught_message(hands, place):
    page = hands.page
    hands.press("g", "i")
    page.one("main input")
    hands.press(Keys.TAB)
    page.until(lambda: page.run("return document.activeElement.matches('main form input')"))
    hands.press(Keys.ENTER)
    page.one("main button", "Stop catching")
    with Provider(place, place.certificate) as provider:
        provider.push("ab" * 32, b'{"aps":{"allert":"Dinner is ready"}}')
    hands.open_row()
    page.until(lambda: "Dinner is ready" in page.one(".is-open").text)
    assert "BadDeviceToken" in page.one(".is-open").text
    assert hands.strokes <= MOST
    page.one("main button", "Stop catching").click()
    page.one("main button", "Catch for an hour")


def test_support_finds_why_a_device_got_nothing(hands, place):
    page = hands.page
    device = Identity(place, "customer-4711")
    token = device.stay().register()
    device.close()
    first, second = (curl(place, place.certificate, token, b'{"aps":{"alert":"hello"}}', topic=TOPIC) for _ in range(2))
    hands.press("g", "d")
    page.one("main [data-row]")
    hands.search("customer-4711", Keys.ESCAPE)
    page.until(lambda: [row.text for row in page.all("main [data-row]")] == ["customer-4711"])
    hands.open_row()
    page.one("h1", "customer-4711")
    hands.open_row()
    # The newest line is that of the first one, whose place the second one took.
    page.until(lambda: page.all(".summary-state") and summary(page).startswith("replaced"))
    hands.press("b")
    page.until(lambda: page.run("return copied"))
    (report,) = page.run("return copied")
    assert first in report and f"- app: {TOPIC}" in report and "| replaced |" in report and token not in report
    assert page.all(".summary a[href*='notifications/']") and first != second
    assert hands.strokes <= MOST


def test_an_operator_sees_what_is_refused_and_to_whom(hands, place):
    page = hands.page
    assert page.one(".health").text.startswith("Ready")
    with Provider(place, place.certificate) as provider:
        provider.push("cd" * 32)
    eventually(lambda: "BadDeviceToken" in shown_refusals(page), what="the group of the refusal")
    hands.press("g", "r")
    hands.open_row()
    page.until(lambda: page.all(".samples li"))
    group = page.one(".refusal").text
    (provider,) = [one["id"] for one in json.loads(herald("provider", "list", "--data", place.data, "--json").stdout) if one["kind"] == "certificate"][:1]
    assert "BadDeviceToken" in group and TOPIC in group and provider in group
    assert page.one(".samples li p:nth-of-type(2)").text
    assert hands.strokes <= MOST


def shown_refusals(page):
    """The refusals of the service, as the page reads them."""
    return page.driver.execute_async_script(
        "const done = arguments[0]; fetch('/v1/refusals', {headers: {'herald-console': localStorage.getItem('herald-session')}}).then((answer) => answer.text()).then(done)",
    )


def test_an_operator_sees_what_ends_soon_and_who_changed_what(hands, place):
    page = hands.page
    herald("provider", "certificate", "--data", place.data, "--topic", TOPIC, "--days", 9, "--out", place.data.parent / "soon.pem")
    hands.press("g", "p")
    page.until(lambda: len(page.all("main [data-tone=waiting]")) == 1)
    hands.press("g", "s")
    page.one("h1", "Settings")
    while page.run("return document.activeElement.textContent") != "Audit":
        hands.press(Keys.TAB)
    hands.press(Keys.ENTER)
    page.until(lambda: any("POST /v1/session" in row.text and "Ada" in row.text for row in page.all("main tbody tr")))
    assert hands.strokes <= MOST
