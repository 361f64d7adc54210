"""The first minutes: `serve --demo` and the line that it prints; `agent run` as a device for everybody."""

import json
import queue
import re
import subprocess
import threading
import urllib.request

import pytest

from parties import assert_accepted, new_id
from provider import HELLO, Provider
from service import HERALD, PATIENCE, TOPIC, eventually, free_port, herald


def test_the_printed_curl_line_reaches_the_demo_device(fresh, tmp_path):
    port = free_port()
    service = fresh("--demo", "--demo-screen-port", str(port)).start()
    line = eventually(
        lambda: next((line for line in service.lines if "curl " in line), None), what="the line with curl"
    )
    command = line[line.index("curl ") :]
    result = subprocess.run(
        ["bash", "-c", f"{command} --silent --write-out '%{{http_code}}'"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert result.stdout.endswith("200"), result.stdout + result.stderr
    body = re.search(r"'(\{.*?\})'", command)[1]
    alert = json.loads(body)["aps"]["alert"]
    alert = alert if isinstance(alert, str) else next(iter(alert.values()))
    after = service.lines.index(line)
    eventually(lambda: any(alert in shown for shown in service.lines[after + 1 :]), what="the notification on the screen")
    (said,) = eventually(lambda: [line for line in service.lines if "screen is at" in line], what="the line with the screen")
    screen = re.search(r"http://127.0.0.1:\d+/", said)[0]
    assert screen == f"http://127.0.0.1:{port}/"
    with urllib.request.urlopen(f"{screen}api/device", timeout=PATIENCE) as answer:
        device = json.load(answer)
    assert device["notifications"][0]["body"] == alert
    # A link leads into the console, once.
    link = next(re.search(r"(http://\S+)/#login=(\S+)", line) for line in service.lines if "#login=" in line)
    request = urllib.request.Request(
        f"{link[1]}/v1/session", json.dumps({"code": link[2]}).encode(),
        {"content-type": "application/json", "herald-console": "1", "origin": link[1]},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert json.load(answer)["role"] == "admin"
    # The page offers the same line.
    with urllib.request.urlopen(f"{screen}api/send", timeout=PATIENCE) as answer:
        assert json.load(answer)["line"].replace("{token}", device["apps"][0]["token"]) == command
    # Its device's folder goes with it.
    assert service.stop() == 0


def test_the_demo_is_made_once(fresh):
    service = fresh("--demo").start()
    credentials = herald("provider", "list", "--data", service.data, "--json").stdout

    def devices():
        listed = json.loads(herald("device", "list", "--data", service.data, "--json").stdout)
        return [(entry["id"], entry["serial"]) for entry in listed]

    made = devices()
    assert {entry["kind"] for entry in json.loads(credentials)} == {"certificate", "key"}
    assert len(made) == 1
    service.stop()
    service.start()
    assert herald("provider", "list", "--data", service.data, "--json").stdout == credentials
    assert devices() == made
    assert service.stop() == 0


class Agent:
    """`herald agent run --json`, line by line."""

    def __init__(self, service, path, *apps):
        options = [part for app in apps for part in ("--app", app)]
        self.process = subprocess.Popen(
            [HERALD, "agent", "run", "--identity", path, *options, "--json",
             "--service", "127.0.0.1", "--device-port", str(service.listeners['device']), "--ca", service.ca],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.lines = queue.Queue()
        self.waiting = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def next(self, word):
        """The first line not yet returned that has this word in it."""
        passed = []
        try:
            while True:
                line = self.waiting.pop(0) if self.waiting else self.lines.get(timeout=PATIENCE)
                if word in json.dumps(line):
                    return line
                passed.append(line)
        finally:
            self.waiting = passed + self.waiting

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE)


@pytest.fixture
def agent(shared):
    path, _ = shared.device("agent")
    agent = Agent(shared, path, TOPIC, f"{TOPIC}.voip")
    yield agent
    if agent.process.poll() is None:
        agent.stop()


def test_an_agent_prints_its_tokens_and_notifications(parties, agent):
    tokens = {}
    while len(tokens) < 2:
        line = agent.next('"token"')
        tokens[line["topic"]] = line["token"]
    assert set(tokens) == {TOPIC, f"{TOPIC}.voip"}
    with parties.provider("key") as provider:
        id = new_id()
        assert_accepted(provider.push(tokens[TOPIC], HELLO, id=id), id)
        line = agent.next(id)
        assert HELLO in line.values() or json.dumps(HELLO, separators=(",", ":")) in line.values()
    assert agent.stop() == 0


def test_an_agent_gets_missed_notifications_after_a_reconnect(shared, parties):
    path, _ = shared.device("agent")
    first = Agent(shared, path, TOPIC)
    token = first.next('"token"')["token"]
    assert first.stop() == 0
    with Provider(shared, parties.certificate) as provider:
        id = new_id()
        assert_accepted(provider.push(token, id=id), id)
    second = Agent(shared, path, TOPIC)
    assert second.next('"token"')["token"] == token
    second.next(id)
    assert second.stop() == 0
