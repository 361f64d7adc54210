"""The README's walk-through with two machines: its commands print the README's output."""

import re

import pytest

from machines import Machines
from service import ROOT

TITLE = "## A device on another machine"
PROMPT = re.compile(r"(post|lamp)\$ (.*)")
#: A word in capitals, which stands for a value that differs each time.
PLACEHOLDER = re.compile(r"\b[A-Z][A-Z-]{3,}\b")
#: A moment is another one each time.
NOT_KEPT = {"TIME"}
#: On a busy machine the acknowledgement may come after the answer; the next step of the walk-through shows that it came.
DELIVERED = "accepted: delivered: the device has acknowledged it"
LATE = "accepted: stored: Herald has sent it to the device, which has not acknowledged it yet"
#: Commands that go on until they are stopped.
LASTING = ("herald serve ", "herald agent run ")


def steps():
    """(machine, command, lines that it prints), in the order of the README."""
    readme = (ROOT / "README.md").read_text()
    section = readme[readme.index(TITLE):].removeprefix(TITLE).split("\n## ")[0]
    steps = []
    for block in re.findall(r"^```console\n(.*?)^```$", section, re.M | re.S):
        for line in block.splitlines():
            if found := PROMPT.fullmatch(line):
                steps.append((found[1], found[2], []))
            else:
                steps[-1][2].append(line)
    return steps


class Words:
    """The values of the placeholders known so far."""

    def __init__(self):
        self.known = {}

    def filled(self, command):
        return PLACEHOLDER.sub(lambda found: self.known.get(found[0], found[0]), command)

    def check(self, line, promised):
        """Asserts that a line matches the README, and keeps the values of its placeholders."""
        if promised == DELIVERED and line.startswith(LATE):
            return
        pattern, end, new = "", 0, []
        for found in PLACEHOLDER.finditer(promised):
            pattern += re.escape(promised[end:found.start()])
            end = found.end()
            if found[0] in self.known and found[0] not in NOT_KEPT:
                # Providers and devices write an apns-id each in their own way.
                pattern += f"(?i:{re.escape(self.known[found[0]])})"
            else:
                new.append(found[0])
                pattern += r"(\S+)"
        match = re.fullmatch(pattern + re.escape(promised[end:]), line)
        assert match, f"{line!r} is not {promised!r}"
        self.known.update(zip(new, match.groups()))


@pytest.fixture
def machines(tmp_path):
    machines = Machines(tmp_path, "post", "lamp")
    yield machines.by_name
    machines.close()


def test_the_walk_through_prints_the_readmes_output(machines):
    words, lasting = Words(), []
    walk = steps()
    assert {machine for machine, _, _ in walk} == set(machines) and len(walk) >= 7
    for name, command, promised in walk:
        running = machines[name].start(words.filled(command))
        for number, line in enumerate(promised):
            got = running.line(number)
            assert got is not None, f"{command}: ended after {running.lines}"
            words.check(got, line)
        if command.startswith(LASTING):
            lasting.append((running, len(promised)))
        else:
            assert running.wait() == 0, f"{command}: {running.lines}"
            assert len(running.lines) == len(promised), f"{command}: prints more: {running.lines}"
    agent, shown = lasting[-1]
    # Beyond what the README shows, the agent prints the notification as it came.
    assert agent.line(shown).startswith(f"notification for com.example.chat: apns-id {words.known['APNS-ID'].lower()} ")
    assert (machines["lamp"].folder / "herald-device" / "identity.pem").stat().st_mode & 0o777 == 0o600
    assert not (machines["lamp"].folder / "herald-data").exists()
    for running, _ in reversed(lasting):
        assert running.stop() == 0


def test_the_machines_are_two(machines):
    """A listener of one machine is reachable from the other only over the network."""
    server = machines["post"].start("python3 -u -m http.server 8000")
    assert "Serving HTTP" in server.line(0)
    assert machines["lamp"].start("curl --silent --fail --max-time 60 http://localhost:8000/").wait() == 7
    assert machines["lamp"].start("curl --silent --fail --max-time 60 http://post.example:8000/").wait() == 0
