"""`make demo-cluster` as its viewer has it: two people chat, a node is killed, and the chat goes on."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

from nats_servers import NATS_SERVER
from service import HERALD, PATIENCE, ROOT, eventually


def ask(address, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data=data, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.read().decode()


class Viewer:
    """The demo's terminal, with pipes."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [ROOT / "Examples" / "demo-cluster"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "HERALD_BINARY": str(HERALD), "NATS_SERVER": str(NATS_SERVER), "TMPDIR": str(folder)},
        )
        self.lines = []

    def line(self, pattern):
        """The groups of the pattern in the next line that matches it."""
        for line in self.process.stdout:
            self.lines.append(line)
            if match := re.search(pattern, line):
                return match.groups()
        pytest.fail("".join(self.lines))

    def enter(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def close(self):
        # Its processes end with it.
        self.process.kill()
        self.process.wait(timeout=PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()


def running(folder):
    """The processes whose command line names a folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            pass
    return found


@pytest.fixture
def folder():
    """A folder with a short path: those of sockets are limited."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield pathlib.Path(folder)


@pytest.fixture
def viewer(folder):
    viewer = Viewer(folder)
    yield viewer
    viewer.close()


@pytest.mark.slow
def test_a_node_is_killed_and_the_chat_goes_on(viewer, folder):
    screens, places = {}, {}
    for name in ("Ann", "Bob"):
        screens[name], places[name] = viewer.line(rf"^    {name}  (http\S+)   connected to (herald\d)$")
    viewer.line("^ready$")
    assert places["Ann"] != places["Bob"]
    pages = {}

    def device(name):
        return json.loads(ask(screens[name] + "api/device"))

    for number, name in enumerate(screens):
        app = eventually(lambda name=name: [app for app in device(name)["apps"] if app["token"]], what=f"{name}'s token")[0]
        pages[name] = app["screen_url"]
        joins = {"udid": f"{number:040x}", "token": app["token"], "languages": "en", "name": name, "code": "open sesame"}
        ask(pages[name] + "api/join", joins)

    def says(text):
        """Ann writes; PushChat is not open on Bob's device, so an alert comes."""
        ask(pages["Ann"] + "api/message", {"udid": f"{0:040x}", "text": text})
        shown = lambda: any(text in notification["body"] for notification in device("Bob")["notifications"])
        eventually(shown, timeout=PATIENCE, what=f"{text!r} on Bob's device; the demo said {viewer.lines[-5:]}")

    says("before")
    viewer.enter()
    (killed,) = viewer.line(r"(herald\d) is killed \(kill -9\)\. It held the device of Bob\.")
    assert killed == places["Bob"]
    says("while he is away, or comes back")
    place, seconds = viewer.line(r"Bob's device is connected to (herald\d), (\S+) s after the kill")
    assert place != killed and 0 < float(seconds) < PATIENCE
    says("afterwards")
    viewer.enter()
    assert viewer.line(r"(herald\d) serves again") == (killed,)
    viewer.process.send_signal(signal.SIGINT)
    assert viewer.process.wait(timeout=PATIENCE) == 0
    assert not list(folder.iterdir()) and not running(folder)
    for address in screens.values():
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(address, timeout=5)


def test_a_missing_program_is_one_line(tmp_path):
    environment = {**os.environ, "HERALD_BINARY": str(HERALD), "NATS_SERVER": "no-such-server", "TMPDIR": str(tmp_path)}
    result = subprocess.run([ROOT / "Examples" / "demo-cluster"], env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "demo-cluster: there is no no-such-server: run `make demo-cluster`, which builds and installs all that it needs\n"
    )
    assert not list(tmp_path.iterdir())
