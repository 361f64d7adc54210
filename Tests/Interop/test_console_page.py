"""The console's pages in Chromium, on a made-up service: for everybody, on every width, live, and safe from what people send."""

import datetime
import json
import re
import time
import urllib.parse

import axe
import pytest
from agents import curl
from console_page import RESOURCES, SHARED
from console_service import CATCHING, DRILL, ID, REFUSALS, at, line
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from service import TOPIC, herald

ONE = ID.format(0x8002)
KEY = "key%20K7F2ABCDEF%20of%20team%20ABCDE12345"
OPEN = "|".join(REFUSALS[0][name] for name in ("provider", "topic", "environment", "reason"))
#: Each page with an element that is there once it is drawn.
PAGES = {
    "now": ("/", ".tile"), "notifications": ("/notifications", ".found tr"), "notification": (f"/notifications/{ONE}", ".life li"),
    "unknown notification": ("/notifications/nobody", ".reasons"), "inbox": (f"/inbox?open={ID.format(0x8001)}&tab=check", ".is-open .problems"),
    "compose": ("/compose?device=kitchen", ".previews li"), "devices": ("/devices", ".table td"), "device": ("/devices/kitchen", ".table td"),
    "providers": ("/providers?add=certificate", ".table td"), "provider": (f"/providers/{KEY}", ".around li"), "refusals": (f"/refusals?open={OPEN}", ".samples li"),
    "counts": ("/counts?range=7d", ".table td"), "channels": ("/channels", ".table td"), "drills": ("/drills", ".note"), "tools": ("/tools?tool=jwt", "textarea"), "settings": ("/settings", ".facts dd"),
    "tokens": ("/settings?part=tokens", ".table td"), "audit": ("/settings?part=audit", ".table td"), "nothing": ("/settings?part=sessions", ".table td"),
}


def show(browser, console, path="/", ready="main h1", **options):
    """Opens a page, with nothing that an earlier one left in the browser."""
    browser.open(console.url + path, ready=ready, **options)
    return browser


def complaints(page):
    """The complaints of the browser, but for answers that the test wants."""
    return [one for one in page.complaints() if "Failed to load resource" not in one]


def resize(page, width, dark):
    command = page.driver.execute_cdp_cmd
    command("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 720})
    features = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
    command("Emulation.setEmulatedMedia", {"features": [{"name": name, "value": value} for name, value in features.items()]})


@pytest.fixture
def unusual(console):
    """A service in which everything unusual is on."""
    console.answers["GET /v1/status"] = {
        **console.answers["GET /v1/status"], "drills": [DRILL], "catching": CATCHING, "clock_moved_seconds": 3600,
    }
    return console


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(chromium, unusual, name):
    path, ready = PAGES[name]
    page = show(chromium, unusual, path, ready, width=1440)
    page.one(".bar")
    assert axe.barriers(page) == []
    resize(page, 390, True)
    assert axe.barriers(page) == []
    for width, dark in ((390, False), (1440, True)):
        resize(page, width, dark)
        assert axe.barriers(page, ["color-contrast"]) == []
    assert complaints(page) == []


def test_axe_finds_nothing_in_what_opens(chromium, console):
    page = show(chromium, console, "/devices/kitchen", ".table td", width=390)
    page.one("button", "More").click()
    page.one("#more a")
    assert axe.barriers(page) == []
    page.one("button", "Revoke").click()
    page.one("dialog[open]")
    assert axe.barriers(page) == []
    page.press(Keys.ESCAPE)
    page.gone("dialog")
    page.press("?")
    page.one("dialog[open]")
    assert axe.barriers(page) == []
    page = show(chromium, console, "/", ".tile")
    page.one(".as-table summary").click()
    page.one(".as-table td")
    assert axe.barriers(page) == []
    console.answers["GET /v1/session"] = (401, {"error": "sign in"})
    page = show(chromium, console, "/", ".sign-in")
    assert axe.barriers(page) == []


EVIL = [
    '<img src=x onerror="document.title=\'owned\'"><b>bold</b><script>document.title="owned"</script>', "\u202egnp.exe \u2066<b>\u2069 \u200f",
    "w" * 4096, "javascript:document.title='owned'", '"><svg onload=alert(1)>', "🌉🎉 你好 \x00\x1b[31m",
]
#: Members that the page reads as times, states or numbers.
KEPT = {"searched_back_to", "last_seen", "time", "created", "expires", "end", "first", "last", "since", "until", "started", "role", "mode", "environment", "environments", "kind", "issued", "opened", "used", "ends", "topics"}


def poisoned(value, name="", count=[0]):
    """A value with every text replaced by what a malicious one would hold."""
    if isinstance(value, dict):
        return {key if key in KEPT or len(value) < 30 else key: poisoned(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [poisoned(each, name) for each in value]
    if isinstance(value, str) and name not in KEPT:
        count[0] += 1
        return EVIL[count[0] % len(EVIL)]
    return value


@pytest.mark.parametrize("name", PAGES)
def test_texts_of_others_are_texts(chromium, unusual, name):
    path, ready = PAGES[name]
    for request, answer in unusual.answers.items():
        if request.startswith(("GET /v1/session", "GET /v1/series", "GET /v1/clock")) and not request.startswith("GET /v1/sessions"):
            continue
        def evil(path, query, body, answer=answer):
            value = answer(path, query, body) if callable(answer) else answer
            return value if isinstance(value, tuple) else poisoned(value)
        unusual.answers[request] = evil
    page = show(chromium, unusual, path.partition("?open")[0], "main h1", width=320)
    page.until(lambda: not page.all(".loading"), f"{name} stays without content")
    for width in (320, 1440):
        resize(page, width, False)
        page.until(lambda: page.run("return document.documentElement.scrollWidth") <= width, f"{name} is wider than {width}")
    assert page.all("#page b, #page script, #page img:not(.brand img), #page [onerror], #page [onload], a[href^='javascript:']") == []
    assert page.driver.title != "owned"
    assert complaints(page) == []


@pytest.mark.parametrize("width", [320, 768, 1024, 1440])
def test_nothing_overflows(chromium, unusual, width):
    page = show(chromium, unusual, "/", ".tile", width=width)
    for path, ready in PAGES.values():
        page.run("history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))", path)
        page.one(ready)
        assert page.run("return document.documentElement.scrollWidth") <= width, path
        wide = page.run("return [...document.querySelectorAll('.box > *')].filter((one) => one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right + 1).map((one) => one.outerHTML.slice(0, 200))")
        assert wide == [], path
        small = page.run(
            "return [...document.querySelectorAll('main button, main select, main input, nav a, nav button')].filter((one) => one.offsetParent)"
            ".filter((one) => one.type !== 'checkbox' && Math.min(one.offsetWidth, one.offsetHeight) < 24).map((one) => one.outerHTML)",
        )
        assert small == [], path
    assert complaints(page) == []


def test_the_page_is_small():
    sizes = {file.name: file.stat().st_size for folder in (RESOURCES, SHARED) for file in folder.iterdir() if file.suffix in (".js", ".css", ".svg", ".html")}
    imports = {name: set(re.findall(r'(?:from|import) "\./([\w-]+\.js)"', (folder / name).read_text())) for folder in (RESOURCES, SHARED) for name in sizes if (folder / name).is_file() and name.endswith(".js")}

    def needs(name):
        found, rest = set(), {name}
        while rest:
            found |= (one := {rest.pop()})
            rest |= set().union(*(imports[each] for each in one)) - found
        return found

    first = needs("main.js") | needs("page-now.js") | {"index.html", "base.css", "layout.css", "parts.css", "herald.svg"}
    assert sum(sizes[name] for name in first) <= 100_000
    for name in imports:
        if name.startswith("page-"):
            assert sum(sizes[each] for each in needs(name) - first) <= 25_000, name
    assert sum(sizes.values()) <= 300_000


def test_a_link_of_the_command_signs_in(chromium, console):
    page = show(chromium, console, "/notifications#login=aB3_x-9", ".found tr")
    assert console.changed("POST /v1/session") == {"code": "aB3_x-9"}
    assert page.driver.current_url == console.url + "/notifications"
    page.driver.back()
    assert "login" not in page.driver.current_url


def test_the_page_keeps_the_secret_of_its_origin_for_reloads_and_tabs(chromium, console):
    console.answers["POST /v1/session"] = {**console.answers["POST /v1/session"], "page_secret": "for-this-port"}
    show(chromium, console, "/notifications#login=aB3_x-9", ".found tr")
    for path in ("/devices", "/notifications"):
        console.secrets.clear()
        page = show(chromium, console, path, "main tr")
        assert set(console.secrets) == {"for-this-port"}
    page.run("localStorage.removeItem('herald-session')")


def test_a_token_signs_in_and_a_wrong_one_is_told(chromium, console):
    session = console.answers["GET /v1/session"]
    console.answers["GET /v1/session"] = (401, {"error": "sign in"})
    console.answers["POST /v1/session"] = (401, {"error": "no token is like this one"})
    page = show(chromium, console, "/devices", ".sign-in")
    assert [link.get_attribute("href").removeprefix(console.url) for link in page.all(".sign-in a")] == ["/health", "/metrics", "/openapi.yaml"]
    page.one("input[type=password]").send_keys("wrong", Keys.ENTER)
    page.one(".note", "no token is like this one")
    console.answers["POST /v1/session"] = session
    console.answers["GET /v1/session"] = session
    page.one("input[type=password]").send_keys("right", Keys.ENTER)
    page.one(".table td")
    assert [console.changed("POST /v1/session") for _ in range(2)] == [{"token": "wrong"}, {"token": "right"}]
    # A session that ends leads back.
    console.answers["GET /v1/devices"] = (401, {"error": "sign in"})
    page.one("button", "Search").click()
    page.one(".sign-in")


@pytest.mark.parametrize("role, mode, missing", [
    ("viewer", "full", ["Compose", "Inbox", "Tools", "Revoke", "Invite a device", "Invite again", "Send to it", "Copy token", "Add a credential", "Stop"]),
    ("sender", "full", ["Revoke", "Invite a device", "Add a credential", "Stop"]),
    ("admin", "read-only", ["Compose", "Revoke", "Invite a device", "Invite again", "Add a credential", "Stop"]),
])
def test_a_page_shows_what_its_reader_may_do(chromium, unusual, role, mode, missing):
    unusual.set_role(role, mode)
    page = show(chromium, unusual, "/", ".tile")
    for path in ("/", "/devices", "/devices/kitchen", "/providers", f"/providers/{KEY}", "/drills", "/settings", f"/notifications/{ONE}"):
        page.run("history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))", path)
        page.one(".page-head h1, .tile")
        page.until(lambda: not page.all(".loading"))
        # Some say in words that are not seen what they are about.
        words = {element.text.partition("\n")[0] for element in page.all("a, button")}
        assert words & set(missing) == set(), path
    assert ("Compose" in {element.text for element in page.all(".rail a")}) == (role == "sender")


def test_the_environment_stays_while_the_page_changes(chromium, console):
    page = show(chromium, console, "/", ".tile")
    Select(page.one(".head-environment")).select_by_visible_text("production")
    page.until(lambda: page.driver.current_url.endswith("/?environment=production"))
    page.until(lambda: [body["q"] for name, _, body in console.asked if name == "POST /v1/journal/search"][-1] == "environment:production")
    page.one(".rail a", "Notifications").click()
    page.one(".found tr")
    assert page.driver.current_url.endswith("/notifications?environment=production")
    assert page.all(".found tbody tr") and "sandbox" not in page.one(".found").text
    page.press("g", "r")
    page.one(".refusal")
    assert [group.text.split("\n")[0].rstrip("0123456789 ") for group in page.all(".refusal")] == ["TopicDisallowed", "MissingProviderToken"]
    page.press("g", "c")
    page.one(".previews li")
    assert Select(page.one("label", "Environment").find_element("xpath", "../select")).first_selected_option.text == "production"
    Select(page.one(".head-environment")).select_by_visible_text("sandbox")
    page.until(lambda: Select(page.one("label", "Environment").find_element("xpath", "../select")).first_selected_option.text == "sandbox")
    Select(page.one(".head-environment")).select_by_visible_text("both environments")
    page.until(lambda: page.driver.current_url.endswith("/compose"))
    page.one(".rail a", "Refusals").click()
    page.until(lambda: len(page.all(".refusal")) == 3)
    console.answers["GET /v1/status"] = {**console.answers["GET /v1/status"], "environments": ["sandbox"]}
    console.tell("status", {"version": 2})
    page.gone(".head-environment")


def test_an_unknown_identifier_has_the_reasons_that_hold(chromium, console):
    console.answers["GET /v1/status"] = {**console.answers["GET /v1/status"], "journal": {"first": "2026-03-04T12:00:00.000Z", "last": at(0)}}
    page = show(chromium, console, "/notifications/nobody", ".reasons")
    page.until(lambda: "the journal's first line of" in page.one(".reasons").text)
    assert "2026" in page.one(".reasons").text and "node" not in page.one(".reasons").text
    found = console.answers["POST /v1/journal/search"]
    console.answers["POST /v1/journal/search"] = lambda path, query, body: {**found(path, query, body), "missing_nodes": ["herald2"]}
    page.one("button", "Try again").click()
    page.until(lambda: "herald2" in page.one(".reasons").text)
    console.answers["GET /v1/status"].pop("journal")
    console.tell("status", {"version": 2})
    page.until(lambda: "The journal has no line yet." in page.one(".reasons").text)


@pytest.mark.parametrize("role, mode, may", [("sender", "full", True), ("viewer", "full", False), ("sender", "read-only", False)])
def test_a_sender_stops_and_starts_drills_where_the_operator_lets_them(chromium, unusual, role, mode, may):
    unusual.set_role(role, mode, drills="sender")
    page = show(chromium, unusual, "/drills", ".problems li")
    # A button that stops names its drill in words that are not seen.
    words = [element.text.partition("\n")[0] for element in page.all("button")]
    assert ("Stop" in words, "Start" in words, "Move" in words) == (may, may, False), words


def test_new_lines_come_on_top_and_wait_while_paused(chromium, console):
    page = show(chromium, console, "/notifications?q=topic:com.example.chat", ".found tr")
    page.until(lambda: console.watchers == 1)
    console.tell("lines", {"items": [line(0, "received", 1, unique_id=ID.format(0x9001), topic="com.example.new")], "more": 0})
    page.until(lambda: "com.example.new" in page.all(".found tbody tr")[0].text)
    page.one("h1")
    page.press("p")
    page.one("button[aria-pressed=false]", "Go on")
    console.tell("lines", {"items": [line(number, "delivered", 2, unique_id=ID.format(0x9100 + number), topic="com.example.newer") for number in range(3)], "more": 0})
    page.one("button", "3 new").click()
    page.until(lambda: "com.example.newer" in page.all(".found tbody tr")[0].text)
    question = [query for name, query, _ in console.asked if name == "GET /v1/events"]
    assert question == [] or question


def test_a_restart_is_told_and_caught_up(chromium, console):
    page = show(chromium, console, "/", ".tile")
    page.until(lambda: console.watchers == 1)
    searches = lambda: sum(name == "POST /v1/journal/search" for name, _, _ in console.asked)
    before = searches()
    console.stop()
    assert "The service is away since" in page.one(".bar").text
    page.one(".tile strong", "18,204")
    console.start_again()
    page.until(lambda: not page.all(".bar[data-tone=bad]"))
    page.until(lambda: searches() > before)
    page.until(lambda: console.watchers == 1)
    console.tell("counts", {"devices_connected": 7})
    page.one(".tile strong", "7")
    complaints(page)


def test_a_hidden_tab_lets_its_stream_go(chromium, console):
    page = show(chromium, console, "/", ".tile")
    page.until(lambda: console.watchers == 1)
    page.run(
        "const later = setTimeout; window.setTimeout = (work, time) => later(work, time === 20000 ? 10 : time);"
        "Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true}); window.away = true; document.dispatchEvent(new Event('visibilitychange'))",
    )
    # The service notices when it writes.
    page.until(lambda: console.tell("counts", {}) or console.watchers == 0)
    page.run("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    page.until(lambda: console.watchers == 1)


def test_keys_lead_everywhere_and_not_in_fields(chromium, console):
    page = show(chromium, console, "/", ".tile")
    page.press("g", "d")
    page.one("h1", "Devices")
    page.one("main [data-row]")
    page.press("j", "j", Keys.ENTER)
    page.one("h1", "Hall")
    page.press("g", "n")
    page.one(".found tr")
    page.press("/")
    page.press("state:discarded", Keys.ENTER)
    page.until(lambda: page.driver.current_url.endswith("/notifications?q=state%3Adiscarded"))
    page.until(lambda: all("discarded" in row.text for row in page.all(".found tbody tr")))
    page.press("gd?p")
    assert page.run("return document.activeElement.value") == "state:discardedgd?p"
    page.press(Keys.ESCAPE, "?")
    page.one("dialog[open]")
    page.one("dialog label", "Keyboard shortcuts are on").click()
    page.press(Keys.ESCAPE)
    page.gone("dialog")
    page.press("g", "h", "?")
    assert page.all("dialog") == [] and "/notifications" in page.driver.current_url
    page.run("localStorage.clear()")


def test_an_identifier_opens_and_a_token_is_in_no_address(chromium, console):
    page = show(chromium, console, "/notifications", ".found tr")
    field = page.one("#q")
    field.send_keys("a1" * 32, Keys.ENTER)
    page.until(lambda: page.driver.current_url.endswith("?q=device%3Akitchen+topic%3Acom.example.chat"))
    assert console.changed("POST /v1/tools/token") == {"text": "a1" * 32}
    # The next drawing writes again what WebDriver clears without a key.
    field = page.one("#q")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(ONE, Keys.ENTER)
    page.one(".life li")
    assert page.driver.current_url.endswith(f"/notifications/{ONE}")
    page.driver.back()
    page.one(".found tr")


def test_one_notification_says_what_became_of_it(chromium, console):
    page = show(chromium, console, f"/notifications/{ONE}", ".life li")
    assert page.one(".summary-state").text.startswith("replaced")
    assert "Use different topics" in page.one(".summary").text
    assert [step.text for step in page.all(".life strong")] == ["received", "replaced"]
    page.run("window.copied = []; navigator.clipboard.writeText = async (text) => { copied.push(text) }")
    for words in ("Copy as curl", "Copy bug report"):
        page.one("button", words).click()
    page.until(lambda: len(page.run("return copied")) == 2)
    curl, report = page.run("return copied")
    assert "-H 'apns-topic: com.example.weather.station'" in curl and "DEVICE_TOKEN" in curl
    assert "| replaced |" in report and "K7F2ABCDEF" in report
    assert complaints(page) == []


def test_a_revocation_is_typed(chromium, console):
    page = show(chromium, console, "/devices/kitchen", ".table td")
    page.one("button", "Revoke").click()
    button = page.one("dialog button[type=submit]")
    assert button.get_property("disabled")
    page.one("dialog input").send_keys("Kitchen", Keys.ENTER)
    assert console.changed("POST /v1/devices/kitchen/revoke") == {}


def test_a_notification_is_written_and_sent(chromium, console):
    page = show(chromium, console, "/compose?device=kitchen", ".previews li")
    page.one("label", "Title")
    title = page.one("input", "Title")
    title.send_keys(Keys.CONTROL, "a")
    title.send_keys("Dinner")
    page.until(lambda: page.all(".note code"))
    page.one("button", "Send").click()
    order = console.changed("POST /v1/send")
    # The environment is that of the device's app.
    assert order["to"] == {"device": "kitchen", "topic": "com.example.chat"} and order["environment"] == "production"
    assert json.loads(order["payload"])["aps"]["alert"]["title"] == "Dinner"
    assert order["headers"] == {"apns-push-type": "alert", "apns-priority": "10"}
    page.one(".note .tag", "delivered")


def test_numbers_of_a_payload_keep_their_digits_in_the_form(chromium, console):
    page = show(chromium, console, "/compose?device=kitchen", ".previews li")
    page.one("button", "JSON").click()
    text = page.one("textarea")
    text.send_keys(Keys.CONTROL, "a")
    text.send_keys('{"aps":{"alert":{"title":"x"},"badge":3},"n":[9007199254740993,18446744073709551615,1.10,1e400,-0]}')
    page.one("button", "Form").click()
    title = page.one("input", "Title")
    title.send_keys(Keys.CONTROL, "a")
    title.send_keys("Dinner")
    page.one("button", "Send").click()
    payload = console.changed("POST /v1/send")["payload"]
    assert json.loads(payload)["aps"] == {"alert": {"title": "Dinner"}, "badge": 3}
    assert re.sub(r"\s", "", payload).endswith('"n":[9007199254740993,18446744073709551615,1.10,1e400,-0]}')


def test_a_notification_may_be_sent_to_a_device_by_its_name(chromium, console):
    page = show(chromium, console, "/compose?device=Kitchen", ".previews li")
    page.until(lambda: page.one("input", "App (topic)").get_property("value"))
    page.one("button", "Send").click()
    assert console.changed("POST /v1/send")["to"] == {"device": "kitchen", "topic": "com.example.chat"}


def test_a_channel_is_made_sent_to_and_deleted(chromium, console):
    page = show(chromium, console, "/channels", ".table td")
    page.one("button", "Make a channel").click()
    page.one("datalist option")
    page.one("input", "Bundle identifier").send_keys("com.example.new")
    assert axe.barriers(page) == []
    page.one("button", "Make it").click()
    assert console.changed("POST /v1/channels") == {"topic": "com.example.new", "environment": "sandbox", "policy": 1}
    assert page.one(".note .mono").text == "bmV3LW1hZGUtY2hhbm4="
    row = page.all(".flush tbody tr")[1]
    deeds = {one.text.split()[0]: one for one in row.find_elements("css selector", "td a, td button")}
    assert deeds["In"].get_attribute("href").endswith("/notifications?q=topic%3Acom.example.sports+environment%3Asandbox+type%3Aliveactivity")
    deeds["Delete"].click()
    assert "c2Vjb25kLWNoYW5uZWw= of com.example.sports (sandbox), with 2 subscribers" in page.one("dialog[open]").text
    page.one("dialog button", "Delete").click()
    assert console.changed("DELETE /v1/channels/c2Vjb25kLWNoYW5uZWw=") == {}
    page.gone("dialog")
    row = page.all(".flush tbody tr")[1]
    next(one for one in row.find_elements("css selector", "td a") if one.text.startswith("Send")).click()
    page.one("button", "Send")
    page.until(lambda: [one.get_property("value") for one in page.all("main input")][:2] == ["c2Vjb25kLWNoYW5uZWw=", "com.example.sports"])
    assert complaints(page) == []
    # A sender makes them in the sandbox alone.
    console.set_role("sender", "full")
    page = show(chromium, console, "/channels", ".table td")
    page.one("button", "Make a channel").click()
    page.one("datalist option")
    assert [one.text for one in page.all("form.stack select")[0].find_elements("css selector", "option")] == ["sandbox"]
    assert [len([one for one in row.find_elements("css selector", "button") if one.text.startswith("Delete")]) for row in page.all(".flush tbody tr")] == [0, 1]


def test_a_device_is_invited(chromium, console):
    page = show(chromium, console, "/devices", ".table td")
    page.one("button", "Invite a device").click()
    page.one("input", "Name of the device").send_keys("Hall")
    page.one("button", "Make the invitation").click()
    assert console.changed("POST /v1/invitations") == {"name": "Hall", "uses": 1, "days": 1}
    assert page.one(".code").text == "herald-invite:AAAA-BBBB-CCCC"
    page.one("button", "Close").click()
    page.one("button", "Invite a device").click()
    page.one("input", "Labels of the devices").send_keys("room=hall floor=2")
    page.one("button", "Make the invitation").click()
    assert console.changed("POST /v1/invitations")["labels"] == {"room": "hall", "floor": "2"}
    assert complaints(page) == []


def test_a_known_device_is_invited_again(chromium, console):
    page = show(chromium, console, "/devices/kitchen", ".table td")
    page.one("button", "Invite again").click()
    assert console.changed("POST /v1/invitations") == {"device": "kitchen"}
    assert page.one(".code").text == "herald-invite:AAAA-BBBB-CCCC"
    assert complaints(page) == []


def test_devices_are_listed_by_their_absence(chromium, console):
    asked = lambda: [query for name, query, _ in console.asked if name == "GET /v1/devices"]
    page = show(chromium, console, "/devices?connected=unused", ".table td")
    assert asked()[-1]["unused"] == "true" and "connected" not in asked()[-1]
    Select(page.one(".find select")).select_by_visible_text("Not seen for 7 days")
    page.until(lambda: asked()[-1].get("offline_days") == "7")
    assert complaints(page) == []


def test_a_notification_is_sent_to_all_devices_of_a_label(chromium, console):
    tokens = [{"device": one, "name": one, "token": two * 64, "topic": "com.example.chat", "environment": "sandbox"}
              for one, two in (("kitchen", "a"), ("hall", "b"))]
    console.answers["POST /v1/apps/com.example.chat/tokens"] = {"items": tokens, "next": None}
    console.answers["POST /v1/send"] = {"items": [
        {"status": 200, "id": "x", "explanation": "delivered: to the device", "took_ms": 1},
        {"status": 410, "reason": "Unregistered", "took_ms": 1},
    ]}
    console.set_role("sender")
    page = show(chromium, console, "/compose?label=room%3Dhall&topic=com.example.chat", ".previews li")
    page.one("button", "Send").click()
    order = console.changed("POST /v1/send")
    assert [one["token"] for one in order["to"]] == ["a" * 64, "b" * 64] and order["environment"] == "sandbox"
    rows = page.until(lambda: [one.text for one in page.all(".flush tbody tr, .table tbody tr") if "hall" in one.text or "kitchen" in one.text])
    assert any("delivered: to the device" in row for row in rows) and any("Unregistered" in row for row in rows)
    assert complaints(page) == []


def test_a_search_is_saved_under_a_name(chromium, console):
    page = show(chromium, console, "/notifications", ".found tr")
    assert "Save view" not in [one.text for one in page.all("button")]
    page = show(chromium, console, "/notifications?q=state%3Adiscarded&from=-1h", ".found tr")
    for name in ("Lost", "Lost", "Other"):
        page.one("button", "Save view").click()
        field = page.one("input", "Name of the view")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(name, Keys.ENTER)
        page.one(".views a", name)
    assert axe.barriers(page) == []
    page.open(console.url + "/notifications", ready=".views a")
    assert [one.text for one in page.all(".views a")] == ["Lost", "Other"]
    page.one(".views a", "Lost").click()
    page.until(lambda: page.driver.current_url.endswith("/notifications?q=state%3Adiscarded&from=-1h"))
    for name in ("Lost", "Other"):
        page.one(f".views button[aria-label='Remove the view {name}']").click()
    page.gone(".views")
    page.run("localStorage.setItem('herald-views', '[null, 7]')")
    show(chromium, console, "/notifications", ".found tr")
    assert complaints(page) == [] and page.all(".views") == []
    page.run("localStorage.clear()")


def test_a_range_is_dragged_over_the_histogram(chromium, console):
    page = show(chromium, console, "/notifications", ".found tr")
    plot = page.one(".histogram .picks")
    quarter = plot.rect["width"] / 4
    chain = ActionChains(page.driver).move_to_element_with_offset(plot, -quarter, 0).click_and_hold()
    chain.move_by_offset(quarter, 0).move_by_offset(quarter, 0).perform()
    page.one(".dragged")
    ActionChains(page.driver).release().perform()
    page.until(lambda: "from=" in page.driver.current_url)
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(page.driver.current_url).query)
    first, last = (datetime.datetime.fromisoformat(query[name][0]) for name in ("from", "to"))
    # About half of the five minutes that the lines take.
    assert 100 < (last - first).total_seconds() < 220
    page.gone(".dragged")
    assert complaints(page) == []


def test_a_device_shows_what_waits_and_is_watched_live(chromium, console):
    page = show(chromium, console, "/devices/kitchen", ".table td")
    waits = page.one("td[data-label='Waits since'] a")
    assert waits.get_attribute("href") == f"{console.url}/notifications/{ID.format(0x8007)}"
    page.until(lambda: console.watchers == 1)
    # A search that is answered later takes the place of what was told before.
    page.until(lambda: len(page.all("table")) > 1 and page.all("table")[-1].find_elements("css selector", "tbody tr"))
    reads = lambda: sum(name == "GET /v1/devices/kitchen" for name, _, _ in console.asked)
    before = reads()
    console.tell("lines", {"items": [line(0, "received", 1, unique_id=ID.format(0x9001), topic="com.example.new")], "more": 0})
    page.until(lambda: "com.example.new" in page.all("table")[-1].text)
    page.until(lambda: reads() > before)
    page.one("a", "Watch live").click()
    page.one("button[aria-pressed=false], button[aria-pressed=true]")
    assert page.driver.current_url.endswith("/notifications?q=device%3Akitchen")
    assert complaints(page) == []


def test_downloads_hold_what_is_shown_and_no_formula(chromium, console):
    page = show(chromium, console, "/notifications", ".found tr")
    text = page.driver.execute_async_script(
        "const done = arguments[0]; import(document.querySelector('script[src]').src.replace('main.js', 'search.js')).then(({asCSV}) =>"
        " done(asCSV([{time: '2026-01-01', topic: '=HYPERLINK(1)', device: 'a,\"b\"'}])))",
    )
    assert text.splitlines()[1] == "2026-01-01,,,'=HYPERLINK(1),,\"a,\"\"b\"\"\",,,,,,,,"


def test_every_word_is_in_the_table(chromium, console):
    page = show(chromium, console, "/?lang=qps", ".tile")
    for name, (path, ready) in PAGES.items():
        page.run("history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))", path)
        page.one(ready)
        texts = page.run("return [...document.querySelectorAll('main :is(h1, h2, th, label, button, legend, summary, dt)')].map((one) => one.textContent.trim()).filter(Boolean)")
        own = [text for text in texts if not re.search(r"\[.*\]|^[\d,.]+$|[:.=-]|CSV|JSON", text)]
        allowed = {"key K7F2ABCDEF of team ABCDE12345", "Kitchen", "Attic", "TopicDisallowed400", "Unregistered410", "MissingProviderToken403", "alg", "header", "claims"}
        assert [text for text in own if text not in allowed] == [], name
    page = show(chromium, console, "/notifications?lang=qps-rtl", ".found tr", width=390)
    assert page.run("return document.documentElement.dir") == "rtl"
    assert page.run("return document.documentElement.scrollWidth") <= 390


def test_a_push_is_found_on_the_real_service(chromium, shared, device):
    """The way of a newcomer: a link of the command, a push, and what became of it."""
    link = device.stay()
    token = link.register()
    page = chromium.open(herald("console", "--data", shared.data, "--name", "Ada").stdout.strip(), ready=".tile")
    page.until(lambda: "Ada" in page.one(".who").text)
    id = curl(shared, shared.provider_certificate(TOPIC), token, b'{"aps":{"alert":"hello"}}', topic=TOPIC)
    link.notification()
    newest = lambda: [row for row in page.all("main tbody tr") if TOPIC in row.text]
    page.until(lambda: newest() and "delivered" in newest()[0].text)
    page.press("g", "n")
    page.one("#q").send_keys(f"device:{device.id} -state:stored", Keys.ENTER)
    page.until(lambda: "q=device" in page.driver.current_url and page.all(".found tbody tr"))
    page.one("#q").send_keys(Keys.CONTROL, "a")
    page.one("#q").send_keys(id, Keys.ENTER)
    page.until(lambda: page.all(".summary-state") and page.one(".summary-state").text.lower().startswith("delivered"))
    assert page.one(".page-head .mono").text == id
    assert "hello" not in page.run("return document.body.textContent")
    assert complaints(page) == []


def test_seven_tabs_all_see_what_is_new(chromium, shared, device):
    """Browsers have six connections for a service over HTTP/1.1, and each page would like to keep one."""
    link = device.stay()
    token = link.register()
    page = chromium.open(herald("console", "--data", shared.data).stdout.strip(), ready=".tile")
    driver, base = page.driver, page.driver.current_url
    first = driver.current_window_handle
    try:
        driver.get(f"{base}notifications?q=device:{device.id}")
        for number in range(7):
            if number:
                driver.switch_to.new_window("window")
                driver.get(f"{base}notifications?q=device:{device.id}")
            # As windows side by side: all of them are seen.
            page.run("Object.defineProperty(document, 'hidden', {get: () => false})")
            page.one(".empty")
        query = "const done = arguments[0]; navigator.locks.query().then(({held}) => done(held.length))"
        page.until(lambda: driver.execute_async_script(query) == 4, "four streams are not held")
        curl(shared, shared.provider_certificate(TOPIC), token, b'{"aps":{"alert":"hello"}}', topic=TOPIC)
        link.notification()
        for handle in driver.window_handles:
            driver.switch_to.window(handle)
            page.until(lambda: "delivered" in page.one("main").text, "a tab has no new line")
    finally:
        for handle in driver.window_handles:
            if handle != first:
                driver.switch_to.window(handle)
                driver.close()
        driver.switch_to.window(first)
