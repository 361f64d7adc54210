"""An app's own page on the screen: its messages, its rights, and the isolation of other pages."""

import http.server
import json
import queue
import threading

import pytest
from screen_page import app
from service import PATIENCE

TOPIC = "com.example.pushchat"
CATEGORIES = {"NEW_MESSAGE": {"actions": [{"identifier": "reply", "title": "Reply", "text_input": True}]}}
APP = """<!doctype html><title>app</title><script>
addEventListener("message", ({ data, source }) => {
  if (source === parent) fetch("/heard", { method: "POST", body: JSON.stringify(data) });
});
parent.postMessage({ type: "herald-hello" }, "*");
</script>"""
# Says all that an app may say, and then that it did.
GREEDY = APP.replace("</script>", """
parent.postMessage({ type: "herald-badge", badge: 7 }, "*");
parent.postMessage({ type: "herald-categories", categories: %s }, "*");
fetch("/heard", { method: "POST", body: '"said"' });
</script>""" % json.dumps(CATEGORIES))


class Site:
    """A site with one page, which reports the messages that it gets."""

    def __init__(self, page):
        self.heard = queue.Queue()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send_response(200 if self.path == "/" else 404)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(page.encode() if self.path == "/" else b"")

            def do_POST(self):
                site.heard.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(204)
                self.end_headers()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self):
        return self.heard.get(timeout=PATIENCE)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site():
    sites = []

    def make(page):
        sites.append(Site(page))
        return sites[-1]

    yield make
    for each in sites:
        each.close()


def open_app(agent, url, **changes):
    agent.show(apps=[app(screen_url=url, state="foreground", **changes)], foreground=TOPIC)


def test_an_apps_page_gets_the_device_and_its_notifications(page, agent, site):
    greedy = site(GREEDY)
    open_app(agent, greedy.url, opened_with={"aps": {"alert": "hi"}})
    heard = [greedy.next() for _ in range(3)]
    assert "said" in heard
    told = {each["type"]: each for each in heard if each != "said"}
    assert told["herald-answer"] == {"type": "herald-answer", "do": "categories", "notification": None, "error": None}
    assert told["herald-app"] == {
        "type": "herald-app", "device": "kitchen-phone", "languages": ["en"], "topic": TOPIC, "token": "a1" * 32,
        "permission": {"alerts": True, "badges": True, "sounds": True}, "opened_with": {"aps": {"alert": "hi"}}, "received": None,
        "action": None, "pending": [],
    }
    deeds = {deed["do"]: deed for deed in (agent.done(), agent.done())}
    assert deeds["badge"] == {"do": "badge", "topic": TOPIC, "badge": 7}
    assert deeds["categories"] == {"do": "categories", "topic": TOPIC, "categories": CATEGORIES}
    received = {"apns_id": "2f7ca8f4-0000-4000-8000-000000000001", "payload": {"aps": {"alert": "again"}}}
    open_app(agent, greedy.url, received=received)
    assert greedy.next()["received"] == received
    # A page gets numbers of JavaScript.
    open_app(agent, greedy.url, received={**received, "payload": {"aps": {}, "n": 9007199254740993}})
    assert greedy.next()["received"]["payload"] == {"aps": {}, "n": 9007199254740992}
    pressed = {**received, "action": "reply", "text": "yes"}
    open_app(agent, greedy.url, received=received, action=pressed)
    assert greedy.next()["action"] == pressed
    # A change that does not concern the app is not sent.
    agent.show(muted=True)
    agent.show(languages=["de", "en"])
    assert greedy.next()["languages"] == ["de", "en"]
    assert greedy.heard.empty()


def test_a_page_that_replaced_the_apps_page_gets_nothing(page, agent, site):
    stranger = site(GREEDY)
    own = site(f"<!doctype html><script>location = {json.dumps(stranger.url)}</script>")
    open_app(agent, own.url)
    assert stranger.next() == "said"
    # Whatever it was told or had done would be there before this.
    open_app(agent, own.url, badge=3)
    page.run("return new Promise((done) => setTimeout(done, 0))")
    page.one(".home-bar", "Home").click()
    assert agent.done() == {"do": "home"}
    assert stranger.heard.empty()


def test_an_apps_page_schedules_and_cancels(page, agent, site):
    timer = site(APP.replace("</script>", """
parent.postMessage({ type: "herald-schedule", notification: "eggs", payload: { aps: { alert: "Eggs" } }, after: 600 }, "*");
parent.postMessage({ type: "herald-cancel", notification: "tea" }, "*");
</script>"""))
    pending = [{"id": "tea", "next": 0.0, "title": None, "body": "Tea", "every": "day 16:00"}]
    open_app(agent, timer.url, pending=pending)
    told = [timer.next() for _ in range(3)]
    assert next(each for each in told if each["type"] == "herald-app")["pending"] == pending
    answers = [(each["do"], each["notification"], each["error"]) for each in told if each["type"] == "herald-answer"]
    assert sorted(answers) == [("cancel", "tea", None), ("schedule", "eggs", None)]
    assert sorted([agent.done(), agent.done()], key=str) == [
        {"do": "cancel", "notification": "tea", "topic": TOPIC},
        {"do": "schedule", "notification": "eggs", "payload": {"aps": {"alert": "Eggs"}}, "after": 600, "topic": TOPIC},
    ]
