"""Every `sh` block of the README and the docs runs as printed, in the order of its page.

A page has a machine of its own: a network namespace, in which the default ports are free, and a private /var. One shell runs
all blocks of a page. A command that lasts (a service, a device) goes on in the background until the page ends or a later
block starts its successor. Words in capitals are filled from what earlier commands printed, as a reader fills them.

A block that cannot run here has the comment `<!-- not run: why -->` in the line before it. After `<!-- an alternative -->` the
page goes on as if the block had not been. `<!-- the service is stopped -->` is so while the block runs.

The pages of the examples assume nothing: their terminals know no command of this project by its name alone.
"""

import contextlib
import os
import pathlib
import re
import sqlite3
import subprocess

import pytest

from service import HERALD, PATIENCE, ROOT, eventually

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "operations").glob("*.md"))]
EXAMPLES = sorted((ROOT / "Examples").glob("*/README.md"))
BLOCK = re.compile(r"^(?:<!-- (?P<note>.*?) -->\n)?```sh\n(?P<text>.*?)^```$", re.M | re.S)
#: Commands that run until they are stopped: a role, in which one replaces the other, and the output of a working one.
LASTING = [
    (re.compile(r"(\S*/)?herald serve\b"), "service", re.compile(r"^ready$", re.M)),
    (re.compile(r"make run$"), "service", re.compile(r"^ready$", re.M)),
    (re.compile(r"(\S*/)?herald agent run\b(?s:.*) --app\b"), "device", re.compile(r"token.*[0-9a-f]{64}")),
    (re.compile(r"(\S*/)?herald agent run\b(?!(?s:.*) --app\b)|mosquitto_sub\b"), "device", re.compile(r"token.*[0-9a-f]{64}|^screen http", re.M)),
    (re.compile(r"(\S*/)?herald relay run\b"), "relay", re.compile(r"^ready$", re.M)),
    (re.compile(r"\S*/PushChat\b"), "server", re.compile(r"^ready$", re.M)),
    (re.compile(r"(\w+=\S+ )*\S*/KitchenTimer server\b"), "server", re.compile(r"^ready$", re.M)),
    (re.compile(r"(\w+=\S+ )*\S*/KitchenTimer app\b"), "app", re.compile(r"^got a device token", re.M)),
]
#: The pattern of each placeholder: its value is the newest match in the output so far.
PLACEHOLDERS = {
    "IDENTIFIER": re.compile(r"^(?:device|id)\s+(\S+)$", re.M),
    "TOKEN": re.compile(r"token\b.*?\b([0-9a-f]{64})\b"),
    "KEYID": re.compile(r"AuthKey_(\w{10})\.p8"),
    "APNS-ID": re.compile(r"apns-id: (\S+)"),
    "CODE": re.compile(r"^code\s+(\S+)$", re.M),
    "CHANNEL": re.compile(r"^apns-channel-id: (\S+)", re.M | re.I),
}
#: The commands that a page assumes.
SERVICE = "herald serve --hostname push.example.com --hostname localhost\n"
PROVIDER = "herald provider certificate --topic com.example.chat --out provider.pem\n"
KITCHEN = "herald device enroll --name kitchen --out kitchen.pem\n"
DEVICE = KITCHEN + "herald agent run --identity kitchen.pem --app com.example.chat\n"
OPERATED = "herald serve --data /var/lib/herald\n"
BEFORE = {
    "access.md": [OPERATED],
    "apps.md": [SERVICE],
    "devices.md": [SERVICE],
    "drills.md": [SERVICE],
    "backup.md": [OPERATED],
    "watching.md": [OPERATED],
    "providers.md": [SERVICE, PROVIDER, "herald provider key --team TEAM123456 --out .\n", DEVICE],
    "relay.md": [SERVICE, PROVIDER, DEVICE],
}
MACHINE = """
set -e
ip link set lo up
mount --bind "$1/hosts" /etc/hosts
mkdir "$1/upper" "$1/work"
mount -t overlay overlay -o "lowerdir=/var,upperdir=$1/upper,workdir=$1/work" /var
cd "$1/home"
exec bash --norc
"""


class Terminal:
    """One shell on a machine of its own, and what its commands print."""

    def __init__(self, folder, path=f"{HERALD.parent}:{os.environ['PATH']}"):
        self.folder = folder
        (folder / "hosts").write_text("127.0.0.1 localhost push.example.com post.example\n")
        home = folder / "home"
        (home / ".build").mkdir(parents=True)
        (home / ".build" / "debug").symlink_to(HERALD.parent)
        for name in ("Tests", "Examples"):
            (home / name).symlink_to(ROOT / name)
        user = ["--map-root-user"] if os.geteuid() else []
        self._shell = subprocess.Popen(
            ["unshare", *user, "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", MACHINE, "sh", folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1,
            env={**os.environ, "PATH": path},
        )
        self._say("trap 'echo \"$BASH_COMMAND\" >> ../failed' ERR")
        self._runs, self._commands = {}, {}
        self._count = 0

    def _say(self, line):
        """Has the shell read a line, and waits until it has done what it says."""
        self._shell.stdin.write(line + "\necho done\n")
        for answer in self._shell.stdout:
            if answer == "done\n":
                return
        raise AssertionError(f"the shell ended at: {line}")

    def printed(self):
        files = sorted(self.folder.glob("*.out"), key=lambda path: path.stat().st_mtime)
        return "\n".join(path.read_text(errors="replace") for path in files)

    def filled(self, text):
        def value(found):
            pattern = PLACEHOLDERS[found[0]]
            matches = eventually(lambda: pattern.findall(self.printed()), what=f"a value for {found[0]}")
            return matches[-1]

        return re.sub(rf"(?<![A-Z0-9])(?<![A-Z]_)({'|'.join(PLACEHOLDERS)})(?![A-Z0-9])", value, text)

    def run(self, text):
        """Runs a block, command by command; one that lasts goes on in the background."""
        for command in commands(re.sub(r"[ ]{2,}# .*$", "", text, flags=re.M)):
            self._count += 1
            name = f"{self._count:02}"
            command = self.filled(command)
            if any(pattern.match(command) for pattern, _, _ in LASTING):
                self._last(name, command)
                continue
            (self.folder / f"{name}.sh").write_text(command)
            self._say(f"source ../{name}.sh > ../{name}.out 2>&1")
            failed = self.folder / "failed"
            assert not failed.exists(), f"{failed.read_text()}failed:\n{(self.folder / f'{name}.out').read_text()}"

    def _last(self, name, command):
        (role, ready), = [(role, ready) for pattern, role, ready in LASTING if pattern.match(command)]
        self.stop(role)
        is_awaited_by_the_block = re.search(r"&(\s*#.*)?$", command)
        command = re.sub(r"&?(\s+#.*)?$", "", command.strip()).replace("make run", "herald serve --demo")
        variables, command = re.match(r"((?:\w+=\S+ )*)(.*)", command, re.S).groups()
        out = self.folder / f"{name}-{role}.out"
        (self.folder / f"{name}-{role}.sh").write_text(f"exec > ../{out.name} 2>&1\n{variables}exec {command}\n")
        self._say(f"bash ../{name}-{role}.sh & echo $! > ../{role}.pid")
        self._runs[role] = (self.folder / f"{role}.pid").read_text().strip()
        self._commands.setdefault(role, []).append(variables + command)
        if is_awaited_by_the_block:
            return
        eventually(lambda: out.exists() and ready.search(out.read_text(errors="replace")), what=f"{ready.pattern!r} of {command}")

    def start(self, role):
        """Starts the newest command of a role again."""
        self._count += 1
        self._last(f"{self._count:02}", self._commands[role].pop())

    def stop(self, role):
        if role in self._runs:
            # The shell's word for a process that was killed is not the block's.
            self._say(f"kill {self._runs[role]}; wait {self._runs[role]} || true")
            del self._runs[role]

    def back(self):
        """Stops the command that started last, and starts the one whose place it took."""
        role = list(self._runs)[-1]
        self.stop(role)
        del self._commands[role][-1]
        self.start(role)

    def close(self):
        self._shell.kill()
        self._shell.wait(timeout=PATIENCE)


def commands(text):
    """The commands of a block, each with the lines that belong to it."""
    command = ""
    for line in text.splitlines(keepends=True):
        command += line
        parsed = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True)
        if not parsed.stderr and not line.endswith("\\\n"):
            yield command
            command = ""
    assert not command, f"this command does not end: {command}"


def blocks(page):
    return [(found["note"] or "", found["text"]) for found in BLOCK.finditer(page.read_text())]


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def runs(page):
    return any(not note.startswith("not run: ") for note, _ in blocks(page))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if runs(page)], ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_as_printed(page, terminal):
    for text in BEFORE.get(page.name, []):
        terminal.run(text)
    for note, text in blocks(page):
        if not note.startswith("not run: "):
            if note == "the service is stopped":
                terminal.stop("service")
            terminal.run(text)
            if note == "the service is stopped":
                terminal.start("service")
            if note == "an alternative":
                terminal.back()


@pytest.mark.slow
@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.parent.name)
def test_an_example_runs_from_its_page_alone(page, tmp_path):
    """A message of PushChat reaches the device in both environments."""
    terminal = Terminal(tmp_path, path=os.environ["PATH"])
    notified = f"notification for com.example.{page.parent.name.lower()}: "
    try:
        for note, text in blocks(page):
            # A reader has more than one terminal.
            known = {"PWD", *re.findall(r"(?:^|\s)(\w+)=", text)}
            assert set(re.findall(r"\$(\w+)", text)) <= known, text
            if not note.startswith("not run: "):
                before = terminal.printed().count(notified)
                terminal.run(text)
                if "$api/message" in text:
                    eventually(lambda before=before: terminal.printed().count(notified) == before + 1, what=f"a notification after {text}")
        shown = terminal.printed()
    finally:
        terminal.close()
    if page.parent.name == "PushChat":
        assert shown.count(notified) == 2
        # Users and display record, as the page has the reader look at them.
        assert "│ Ann " in shown and "Bob: Dinner is ready" in shown and "Bob: Dinner is served" in shown


READMES = [ROOT / "README.md", *EXAMPLES, ROOT / "clients" / "python" / "README.md"]


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_every_block_of_a_readme_is_run_by_a_test(page):
    """Here, or by the test that the note of the block names. Blocks of other languages have their own tests."""
    notes = [note.removeprefix("not run: ") for note, _ in blocks(page) if note.startswith("not run: ")]
    named = [re.search(r"\btest_\w+\.py\b|it runs this test", note) for note in notes]
    assert all(named), notes
    assert [found[0] for found in named if found[0].endswith(".py") and not (ROOT / "Tests" / "Interop" / found[0]).exists()] == []
    languages = set(re.findall(r"^```(\w+)$", page.read_text(), re.M))
    # `console` by test_walkthrough.py, `python` by test_python_package.py, `sql` below; `text` is a drawing.
    assert languages <= {"sh", "console", "python", "sql", "text"}


def test_the_statement_of_pushchat_queues_a_notification(tmp_path):
    (statement,) = re.findall(r"^```sql\n(.*?)^```$", (ROOT / "Examples" / "PushChat" / "README.md").read_text(), re.M | re.S)
    address = f"sqlite://{tmp_path}/queue.db"
    schema = subprocess.run([HERALD, "relay", "schema", "--database", address], check=True, capture_output=True, text=True).stdout
    with contextlib.closing(sqlite3.connect(tmp_path / "queue.db")) as queue:
        queue.executescript(schema)
        queue.execute(statement.replace("…", f"'{'0a' * 32}'"))
        ((status, payload),) = queue.execute("SELECT status, payload FROM push_queue").fetchall()
    assert status == "queued"
    subprocess.run([HERALD, "check", "-", "--strict"], input=payload, check=True, capture_output=True, text=True)


def test_every_block_has_a_language():
    """A block without a language is not run, and a block of commands as `text` would go unnoticed."""
    for page in [*PAGES, *EXAMPLES]:
        if page in EXAMPLES:
            prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
            assert not re.search(r"^    \S", prose, re.M), f"{page}: an indented block is not run"
        opening = True
        for line in page.read_text().splitlines():
            if line.startswith("```"):
                assert not opening or line != "```" or "docs/architecture.md" in str(page) or page.name == "README.md", page
                opening = not opening
        assert opening, f"{page}: a block does not end"
        for text in re.findall(r"^```text\n(.*?)^```$", page.read_text(), re.M | re.S):
            commands = [line for line in text.splitlines() if re.match(r"(curl|openssl|mosquitto_\w+|apt-get|make) ", line)]
            assert commands == [], f"{page.name}: make it an sh block"
