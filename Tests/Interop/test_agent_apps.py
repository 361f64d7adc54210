"""Apps on a device: shell scripts, permissions, removal, and crashes of the agent."""

import json
import os
import pty
import subprocess

import pytest

from agents import MONOPOLY, Agent, make_bundle
from commands import one_line
from parties import assert_accepted, new_id
from provider import Provider
from service import HERALD, PATIENCE, TOPIC, eventually, herald


@pytest.fixture
def device(shared, tmp_path):
    identity, _ = shared.device("agent")
    agent = Agent(shared, tmp_path / "device", identity)
    yield agent
    agent.close()


def push(shared, parties, token, payload, **options):
    with Provider(shared, parties.certificate) as provider:
        id = options.setdefault("id", new_id())
        assert_accepted(provider.push(token, payload, **options), id)
        return id


def test_a_shell_script_reacts_to_a_push(shared, parties, device, tmp_path):
    bundle = make_bundle(
        tmp_path / "app", TOPIC,
        {
            "receive": 'cat > receive.json; env > environment; ls /proc/self/fd > descriptors; echo "$PWD" > folder',
            "background": 'cat > background.json; echo working; echo "new data"',
        },
        UIBackgroundModes=["remote-notification"],
    )
    os.environ["HERALD_TEST_SECRET"] = "not for programs"
    try:
        token = device.start("--app", bundle, "--allow", "alert").token(TOPIC)
    finally:
        del os.environ["HERALD_TEST_SECRET"]
    id = push(shared, parties, token, {"aps": {"alert": "lights on"}, "number": 12345678901234567})
    container = device.folder / "containers" / TOPIC
    # The last that it writes; all else is there by then.
    folder = eventually(lambda: read(container / "folder"), what="the program's end").strip()
    given = json.loads(read(container / "receive.json"))
    assert given["event"] == "receive" and given["topic"] == TOPIC and given["apns_id"] == id
    assert given["payload"] == {"aps": {"alert": "lights on"}, "number": 12345678901234567}
    environment = dict(line.split("=", 1) for line in read(container / "environment").splitlines())
    assert environment["HERALD_APP"] == TOPIC and environment["HERALD_CONTAINER"] == str(container)
    assert not any("SECRET" in name for name in environment)
    assert folder == str(container)
    # ls has one more descriptor: the folder that it lists.
    assert len(read(container / "descriptors").split()) <= 4
    silent = push(shared, parties, token, {"aps": {"content-available": 1}}, push_type="background", priority=5)
    record = eventually(lambda: (r := device.shown(silent)) and r["background"] and r, what="the run in the background")
    assert record["background"] == "new data" and record["background_launch"] and not record["shown"]


def read(path):
    return path.read_text() if path.exists() else ""


def test_an_extension_may_change_a_notification(shared, parties, device, tmp_path):
    change = """read line; case "$line" in *secret*) echo '{"aps":{"alert":"plain"}}';; *) echo nonsense;; esac"""
    bundle = make_bundle(tmp_path / "app", TOPIC, {"service": change})
    token = device.start("--app", bundle, "--allow", "alert").token(TOPIC)
    id = push(shared, parties, token, {"aps": {"alert": "secret", "mutable-content": 1}})
    record = device.shown(id)
    assert (record["body"], record["extension"]) == ("plain", "changed")
    id = push(shared, parties, token, {"aps": {"alert": "other", "mutable-content": 1}})
    record = device.shown(id)
    assert (record["body"], record["extension"]) == ("other", "failed")


def test_an_app_is_registered_once_the_user_agrees(shared, parties, device):
    device.start("--app", MONOPOLY)
    question = device.next("question")
    assert question["name"] == "Monopoly" and question["wants"] == ["alert", "badge", "sound"]
    topic = question["topic"]
    assert device.show()["questions"] == [topic] and device.show()["apps"][0]["token"] is None
    device.command("allow", topic, "alert,badge")
    device.token(topic)
    app = device.show()["apps"][0]
    assert app["permission"] == {"alerts": True, "badges": True, "sounds": False} and not device.show()["questions"]


def test_permission_is_asked_and_notifications_are_printed_on_the_terminal(shared, parties, device):
    terminal, side = pty.openpty()
    process = subprocess.Popen(
        [
            HERALD, "agent", "run", "--identity", device.identity, "--folder", device.folder, "--app", TOPIC,
            "--service", "127.0.0.1", "--device-port", str(shared.listeners['device']), "--ca", shared.ca,
        ],
        stdin=side, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:

        def line(word):
            while word not in (text := process.stdout.readline()):
                assert text, process.stderr.read()
            return text

        assert "alerts, badges, sounds" in line("Allow?")
        os.write(terminal, b"alert,badges\n")
        assert "alert,badges" in process.stderr.readline()
        line("Allow?")
        os.write(terminal, b"alert,badge\n")
        token = line("token for").split()[-1]
        assert device.show()["apps"][0]["permission"] == {"alerts": True, "badges": True, "sounds": False}
        device.command("set", "--locked", "on")
        push(shared, parties, token, {"aps": {"alert": {"title": "Bell", "body": "It rang"}, "badge": 2}})
        line("notification for")
        assert line("shown") == "  shown on the lock screen: Bell: It rang\n"
        assert line("badge") == "  the badge is 2\n"
        push(shared, parties, token, {"aps": {"sound": "default"}})
        assert line("nothing is shown") == "  nothing is shown\n"
    finally:
        process.kill()
        process.wait(timeout=PATIENCE)
        os.close(terminal)
        os.close(side)


def test_an_ephemeral_device_leaves_no_files(shared, tmp_path):
    identity, _ = shared.device("agent")
    process = subprocess.Popen(
        [
            HERALD, "agent", "run", "--identity", identity, "--app", MONOPOLY,
            "--service", "127.0.0.1", "--device-port", str(shared.listeners['device']), "--ca", shared.ca,
        ],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    while "token for com.example.monopoly" not in process.stdout.readline():
        assert process.poll() is None
    assert list(tmp_path.iterdir())
    process.terminate()
    assert process.wait(timeout=PATIENCE) == 0
    assert not list(tmp_path.iterdir())


def test_permissions_are_listed_and_their_prompt_is_answered(device):
    device.start("--app", TOPIC)
    device.next("question")
    answer = f"herald agent allow {TOPIC} alert,badge,sound --folder {device.folder}"
    assert f"{TOPIC} waits for permission: {answer}" in device.command("show").stdout
    device.command("allow", TOPIC, "alert,sound")
    assert f"{TOPIC} ({TOPIC}): not running, may use alerts, sounds\n" in device.command("show").stdout
    device.command("allow", TOPIC, "none")
    assert "may do nothing" in device.command("show").stdout


def test_turning_notifications_off_reaches_the_service(shared, parties, device, tmp_path):
    token = device.start("--app", make_bundle(tmp_path / "app", TOPIC), "--allow", "alert").token(TOPIC)
    device.command("allow", TOPIC, "none")
    device.next("settings_taken", topic=TOPIC)
    id = push(shared, parties, token, {"aps": {"alert": "unheard"}})
    eventually(
        lambda: any("disabled" in json.dumps(line) for line in shared.journal(id)), what="the journal's line"
    )
    assert device.command("shown", id, check=False).returncode == 1
    device.command("allow", TOPIC, "alert")
    device.next("settings_taken", topic=TOPIC)
    assert device.shown(push(shared, parties, token, {"aps": {"alert": "heard"}}))["body"] == "heard"


def test_removing_an_app_kills_its_token(shared, parties, device, tmp_path):
    bundle = make_bundle(tmp_path / "app", TOPIC)
    token = device.start("--app", bundle, "--allow", "alert").token(TOPIC)
    container = device.folder / "containers" / TOPIC
    assert container.is_dir()
    device.command("remove", TOPIC)
    device.next("removed", topic=TOPIC)
    assert not container.exists() and not (device.folder / "apps" / f"{TOPIC}.app").exists()
    with Provider(shared, parties.certificate) as provider:
        answer = provider.push(token)
        assert (answer.status, answer.reason) == (410, "Unregistered")
    device.command("install", bundle)
    device.command("allow", TOPIC, "alert")
    assert device.token(TOPIC) != token


def test_the_bundle_names_the_environment_and_the_topics_of_the_app(shared, parties, device, tmp_path):
    """`aps-environment` and `HeraldTopics` in Info.plist."""
    voip = f"{TOPIC}.voip"
    bundle = make_bundle(tmp_path / "app", TOPIC, **{"aps-environment": "development", "HeraldTopics": [voip]})
    device.start("--app", bundle, "--allow", "alert")
    tokens = {line["topic"]: line["token"] for line in (device.next("token") for _ in range(2))}
    assert set(tokens) == {TOPIC, voip}
    with (
        Provider(shared, parties.certificate_of_many) as store,
        Provider(shared, parties.certificate_of_many, name="sandbox.localhost") as tester,
    ):
        for topic, token in tokens.items():
            assert store.push(token, topic=topic).reason == "BadDeviceToken"
            id = new_id()
            assert tester.push(token, topic=topic, id=id).status == 200
            device.next("notification", topic=topic, apns_id=id)
        # The same app from the store is another registration, and no longer one for calls.
        device.command("install", make_bundle(tmp_path / "store", TOPIC, **{"aps-environment": "production"}))
        token = device.token(TOPIC)
        assert store.push(token).status == 200
        for topic, former in tokens.items():
            eventually(lambda: tester.push(former, topic=topic).reason == "Unregistered", what="the end of the registration")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("aps-environment", "staging", "aps-environment must be development or production"),
        ("HeraldTopics", [f"{TOPIC}.voip", "com.example.else.voip"], f"that begin with {TOPIC}., like {TOPIC}.voip"),
        ("HeraldTopics", [f"{TOPIC}.x{number}" for number in range(17)], "a list of 16 topics at most"),
    ],
    ids=["environment", "topic", "number"],
)
def test_a_bundle_with_a_wrong_registration_is_refused(tmp_path, key, value, words):
    bundle = make_bundle(tmp_path / "app", TOPIC, **{key: value})
    (tmp_path / "device").mkdir()
    refusal = herald("agent", "install", bundle, "--folder", tmp_path / "device", check=False)
    assert words in one_line(refusal) and "Info.plist" in refusal.stderr
    assert refusal.returncode == 1 and not list((tmp_path / "device" / "apps").glob("*"))


def test_an_app_removed_offline_is_removed_at_the_service(shared, parties, device):
    token = device.start("--app", TOPIC, "--allow", "alert").token(TOPIC)
    assert device.stop() == 0
    device.command("remove", TOPIC)
    device.start()
    device.next("removed", topic=TOPIC)
    with Provider(shared, parties.certificate) as provider:
        assert provider.push(token).status == 410


def test_an_accepted_notification_is_shown_once_despite_kills(shared, parties, device, tmp_path):
    bundle = make_bundle(
        tmp_path / "app", TOPIC, {"receive": "cat > /dev/null; echo x >> runs"}, UIBackgroundModes=["remote-notification"]
    )
    token = device.start("--app", bundle, "--allow", "alert,badge").token(TOPIC)
    sent = []
    with Provider(shared, parties.certificate) as provider:
        for number in range(12):
            sent.append(new_id())
            stream = provider.send(token, {"aps": {"alert": f"number {number}", "badge": number}}, id=sent[-1])
            if number % 3 == 1:
                device.kill()
                device.start().next("connected")
            assert provider.answer(stream).status == 200
            # The service keeps the newest of a device that is away: each is seen before the next is sent.
            assert device.shown(sent[-1])["body"] == f"number {number}"
    shown = device.show()["notifications"]
    assert [notification["apns_id"] for notification in reversed(shown)] == sent
    assert device.show()["apps"][0]["badge"] == 11
    records = [json.loads(line) for line in (device.folder / "shown.jsonl").read_text().splitlines()]
    assert {record["apns_id"] for record in records} == set(sent)


def test_a_second_agent_is_refused(shared, device):
    device.start()
    eventually(lambda: (device.folder / "run" / "agent.sock").exists(), what="the socket")
    second = herald(
        "agent", "run", "--identity", device.identity, "--folder", device.folder, "--ca", shared.ca, check=False
    )
    assert "another agent or command uses" in one_line(second)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda path: path.mkdir(), "has no Info.plist"),
        (lambda path: make_bundle(path, "../../etc"), "CFBundleIdentifier must be"),
        (lambda path: (make_bundle(path, TOPIC) / "secret").symlink_to("/etc/passwd"), "is a link"),
        (lambda path: path.write_text("x"), "is not a folder"),
    ],
    ids=["no-plist", "bad-identifier", "link", "file"],
)
def test_an_invalid_bundle_is_not_installed(device, tmp_path, make, words):
    make(tmp_path / "app")
    device.folder.mkdir()
    assert words in one_line(device.command("install", tmp_path / "app", check=False))
    assert not any((device.folder / "apps").iterdir()) and not (tmp_path / "etc").exists()
