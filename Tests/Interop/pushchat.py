"""PushChat whole: a service, a relay, the chat's server, and people with a device each, whose screens are windows of one browser."""

import json
import queue
import shutil
import signal
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

from agents import Agent
from relay import Relay, SQLiteQueue, asking
from selenium.webdriver.common.keys import Keys
from service import HERALD, PATIENCE, ROOT, eventually, free_port

APP = "com.example.pushchat"
BUNDLE = ROOT / "Examples" / "PushChat" / "PushChat.app"
PUSHCHAT = HERALD.with_name("PushChat")


class Server:
    """The chat's server."""

    def __init__(self, folder, queue):
        self.database = SQLiteQueue(folder / "chat.db")
        self.queue = queue
        self.process = None
        self.url = None

    def start(self, port=None, *options):
        self.process = subprocess.Popen(
            [
                PUSHCHAT, "--database", self.database.path, "--queue", self.queue, "--port", str(port or free_port()),
                "--sweep-every", "1", *options,
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line.strip()) for line in self.process.stdout], daemon=True).start()
        first = lines.get(timeout=PATIENCE)
        assert first.startswith("pushchat http://"), first
        self.url = first.removeprefix("pushchat ")
        assert lines.get(timeout=PATIENCE) == "ready"
        return self

    def ask(self, path, body=None, kind="application/json", **headers):
        """The status, the body, and the headers of an answer."""
        if body is not None and not isinstance(body, bytes):
            body = urllib.parse.urlencode(body).encode() if "form" in kind else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=body, headers={"content-type": kind, **headers})
        try:
            answer = urllib.request.urlopen(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read().decode()
            return answer.status, json.loads(text) if "json" in answer.headers["content-type"] else text, answer.headers

    def users(self):
        return {row["name"] for row in self.database.run("SELECT name FROM active_users")}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=PATIENCE)


class Person(Agent):
    """Somebody with a device, its screen in a window of the browser, and PushChat on it."""

    def __init__(self, name, service, folder, chat, browser):
        super().__init__(service, folder / name, service.device(name)[0])
        self.name = name
        self.bundle = folder / f"{name}-bundle" / "PushChat.app"
        shutil.copytree(BUNDLE, self.bundle)
        plist = self.bundle / "Info.plist"
        plist.write_text(plist.read_text().replace("http://127.0.0.1:8090/", chat.url))
        self.browser = browser
        self.start("--app", self.bundle, "--allow", "alert,badge,sound", "--screen", "0")
        self.url = self.next("screen")["url"]
        self.device_token = self.token(APP)
        browser.driver.switch_to.new_window("window")
        self.window = browser.driver.current_window_handle
        browser.open(self.url)

    @property
    def snapshot(self):
        with urllib.request.urlopen(self.url + "api/device", timeout=PATIENCE) as answer:
            return json.loads(answer.read())

    @property
    def on_screen(self):
        """The app's state on the device."""
        (app,) = self.snapshot["apps"]
        return app

    def act(self, **action):
        request = urllib.request.Request(
            self.url + "api/device", data=json.dumps(action).encode(), headers={"content-type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=PATIENCE).close()

    def screen(self):
        """The browser, at this person's screen."""
        self.browser.driver.switch_to.window(self.window)
        return self.browser

    def app(self):
        """The browser, in the app that is open on this person's screen."""
        page = self.screen()
        page.driver.switch_to.frame(page.one(".app-frame"))
        return page

    def open_app(self):
        self.act(do="open", topic=APP)
        return self.app()

    def join(self, code):
        page = self.open_app()
        page.until(lambda: page.one("#join").is_displayed(), "the form to join stayed away")
        for field, text in (("#name", self.name), ("#code", code)):
            page.one(field).clear()
            page.one(field).send_keys(text)
        page.one("#join-words").click()
        page.until(lambda: page.one("#room").is_displayed(), "the room stayed away")

    def say(self, *texts):
        page = self.app()
        for text in texts:
            # Typing thousands of characters takes minutes.
            page.run("document.getElementById('text').value = arguments[0]", text)
            page.one("#text").send_keys(Keys.ENTER)
            page.until(lambda text=text: text in self.texts(page), f"{text[:40]!r} was not sent")

    @staticmethod
    def texts(page):
        return page.run("return [...document.querySelectorAll('#messages p')].map((text) => text.textContent)")

    def reads(self, *texts):
        """Waits until these are the newest in the open app, each once."""
        page = self.app()
        page.until(lambda: self.texts(page)[-len(texts):] == list(texts), f"{self.name} does not see {texts}")
        assert all(self.texts(page).count(text) == 1 for text in texts)

    def received(self, body):
        """Waits until the app has got this by push, which may be after it has read it from the server: the payload's `aps`."""

        def found():
            received = self.on_screen["received"]
            return received and received["payload"]["aps"]["alert"]["body"] == body and received["payload"]["aps"]

        return eventually(found, what=f"{body!r} in the app")

    def alerted(self, body):
        """Waits for an alert that says this."""
        return eventually(
            lambda: [shown for shown in self.snapshot["notifications"] if shown["body"] == body], timeout=PATIENCE, what=f"{body!r}"
        )[0]


class Room:
    """Ann and Bob, and everything behind them."""

    def __init__(self, service, folder, browser):
        self.service = service
        self.queue = SQLiteQueue(folder / "relay.db")
        self.relay = Relay(
            self.queue.url, "--topic", APP, "--certificate", service.provider_certificate(APP),
            "--service", f"localhost:{service.listeners['api']}", "--ca", service.ca, *asking(service),
            "--feedback", f"localhost:{service.listeners['feedback']}", "--feedback-every", "1s",
        ).start()
        self.chat = Server(folder, self.queue.path).start()
        self.home = browser.driver.current_window_handle
        # A page of an earlier test would go on asking for its agent, and complain here.
        browser.driver.get("about:blank")
        self.browser = browser
        # The page of an earlier test would complain that its agent is gone.
        browser.driver.get("about:blank")
        self.ann, self.bob = (Person(name, service, folder, self.chat, browser) for name in ("Ann", "Bob"))
        for person in (self.ann, self.bob):
            person.join("open sesame")

    def close(self):
        for person in (self.ann, self.bob):
            person.screen().driver.close()
            person.close()
        self.browser.driver.switch_to.window(self.home)
        self.chat.close()
        self.relay.close()
