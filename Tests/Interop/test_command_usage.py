"""The command line as a person meets it: help, exit codes, and one line that says what is wrong and how to mend it."""

import json
import os
import re
import signal
import socket
import subprocess
from urllib.parse import quote

import pytest
import yaml

from commands import failed_start, one_line
from parties import assert_accepted, new_id
from provider import HELLO, Provider, away_device, listening_device
from service import HERALD, PATIENCE, ROOT, TEAM, TOPIC, eventually, herald
from test_console_description import ask

COMMANDS = [
    ["serve"], ["status"], ["init"], ["provider"], ["provider", "certificate"], ["provider", "key"], ["provider", "list"],
    ["provider", "revoke"], ["app"], ["app", "forget"], ["app", "list"], ["app", "claim"], ["app", "release"], ["device"], ["device", "enroll"], ["device", "list"], ["device", "revoke"], ["agent", "run"],
    ["send"], ["check"], ["journal"], ["backup"], ["restore"], ["doctor"], ["console"], ["console", "link"], ["console", "token"], ["console", "tokens"], ["console", "revoke"], ["console", "description"], ["token", "inspect"], ["token", "keys"], ["token", "rotate"], ["token", "retire"],
]
DAY = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_an_example(command):
    result = herald(*command, "--help")
    assert "USAGE: herald " + " ".join(command) in result.stdout
    assert "xample" in result.stdout


def version():
    return subprocess.run([ROOT / "scripts" / "version"], check=True, capture_output=True, text=True).stdout.strip()


def test_the_binary_prints_its_version():
    built = re.fullmatch(r"herald (\S+) \((?:[0-9a-f]{12}\+?, \d{4}-\d\d-\d\d|commit unknown)\)\n", herald("--version").stdout)
    assert built and built[1] == version()


def test_every_file_with_the_version_says_the_same():
    relay = (ROOT / "Sources" / "Provider" / "HeraldRelay" / "Resources" / "openapi.yaml").read_text()
    for text in (relay, herald("console", "description").stdout):
        assert yaml.safe_load(text)["info"]["version"] == version()
    releases = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert releases[:2] == ["Unreleased", version()]


def commands_with(option):
    """The words of each command that has an option, and whether it needs something else: as it says itself."""
    found = {}

    def walk(command, words):
        words = [*words, command["commandName"]]
        for part in command.get("subcommands", []):
            walk(part, words)
        names = [name["name"] for argument in command.get("arguments", []) for name in argument.get("names", [])]
        if option in names:
            found[" ".join(words[1:])] = words[1:]

    walk(json.loads(herald("--experimental-dump-help").stdout)["command"], [])
    return found


CHANNEL = "AAECAwQFBgcICQoLDA0ODw=="
#: The other arguments that commands need before they read their configuration.
NEEDED = {
    "agent allow": [TOPIC, "none"], "agent install": ["."], "agent remove": [TOPIC], "agent shown": [new_id()],
    "agent channel subscribe": ["--app", TOPIC, CHANNEL], "agent channel unsubscribe": ["--app", TOPIC, CHANNEL],
    "agent channel show": ["--app", TOPIC, CHANNEL],
    "agent schedule": ["--app", TOPIC, "--after", "1h", "--alert", "x"], "agent cancel": ["--app", TOPIC, "--all"],
    "agent set": ["--home"], "app claim": [TOPIC, "--team", TEAM], "app forget": [TOPIC], "app release": [TOPIC],
    "backup": ["out"], "clock advance": ["1h"], "cluster evict": ["herald3"], "cluster import": ["folder"],
    "console revoke": ["x"], "console token": ["--name", "x"],
    "device disconnect": ["x"], "device enroll": ["--out", "x.pem"], "device label": ["x", "a=b"], "device revoke": ["x"],
    "device withdraw": ["x"], "drill renew": ["3"], "drill start": ["drop", "--for", "1m"], "drill stop": ["--all"],
    "journal": ["--topic", TOPIC], "provider certificate": ["--topic", TOPIC, "--out", "x.pem"],
    "provider key": ["--team", TEAM, "--out", "."], "provider revoke": ["x"], "relay purge": ["--older-than", "7d"],
    "relay retry": ["--reason", "NoCredential"], "relay revive": ["--all"], "restore": ["out"], "send": ["00" * 32],
    "token inspect": ["00" * 32], "token retire": ["1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("by", ["option", "variable"])
def test_every_command_that_takes_a_configuration_file_reads_it(by, tmp_path):
    commands = commands_with("config")
    assert {"serve", "send", "feedback", "agent run", "relay status"} <= commands.keys()
    wrong = {}
    for name, words in commands.items():
        told = ["--config", "nowhere.yaml"] if by == "option" else []
        variables = {} if told else {"HERALD_CONFIG": "nowhere.yaml"}
        result = herald(
            *words, *NEEDED.get(name, []), *told, check=False, cwd=tmp_path, env=os.environ | variables,
        )
        if result.returncode not in (1, 78) or "cannot read nowhere.yaml: No such file" not in result.stderr:
            wrong[name] = result.stderr
    assert wrong == {}
    assert not list(tmp_path.iterdir())


def test_an_unknown_command_lists_the_commands():
    result = herald("device", "frobnicate", check=False)
    assert result.returncode == 64
    assert "'frobnicate' is not a command of 'herald device': its commands are enroll, invite, invitations, withdraw, list, label, disconnect, revoke, announcement." in result.stderr


def test_a_path_of_one_character_is_a_path(tmp_path):
    """Foundation traps on it, where it asks for the folder of a path."""
    herald("init", "--data", "d", cwd=tmp_path)
    herald("device", "enroll", "--out", "x", "--data", "d", cwd=tmp_path)
    herald("backup", "--data", "d", "b", cwd=tmp_path)
    herald("restore", "b", "--data", "e", cwd=tmp_path)
    assert herald("doctor", "--data", "n", cwd=tmp_path, check=False).stdout
    code = herald("device", "invite", "--data", "d", cwd=tmp_path).stdout
    code = re.search(r"^code +(\S+)$", code, re.M)[1]
    said = one_line(herald("agent", "activate", "--code", code, "--folder", "f", "--service", "https://localhost:1", cwd=tmp_path, check=False))
    assert "localhost:1" in said


@pytest.mark.parametrize(
    "line, words",
    [
        ("serve --port 1", "did you mean '--api-port' or '--binary-port' or "),
        ("send 00 --cert x", "Error: Unknown option '--cert': did you mean '--certificate'?"),
        ("drill start refuse --reasons x", "Error: Unknown option '--reasons': did you mean '--reason'?"),
        ("clock --data X advance 1h", "stand behind it: herald clock advance --data X 1h"),
        ("--data X serve", "stand behind it: herald serve --data X"),
        ("devices list", "Error: 'devices' is not a command of 'herald': did you mean 'herald device'?"),
    ],
)
def test_a_wrong_word_is_answered_by_its_meaning(line, words, tmp_path):
    result = herald(*line.split(), check=False, cwd=tmp_path)
    assert result.returncode == 64 and words in result.stderr.splitlines()[0], result.stderr
    assert "Usage: herald " in result.stderr and not list(tmp_path.iterdir())


def test_a_mistyped_command_suggests_the_right_one():
    result = herald("sevre", "--demo", check=False)
    assert result.returncode == 64
    assert result.stderr.splitlines()[0] == "Error: 'sevre' is not a command of 'herald': did you mean 'herald serve'?"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"], ["nonsense"], ["serve", "--nonsense"], ["serve", "--api-port", "x"], ["serve", "extra"],
        ["provider", "certificate"], ["provider", "certificate", "--topic", TOPIC], ["provider", "key", "--out", "x"],
        ["provider", "revoke"], ["device", "enroll"], ["device", "nonsense"], ["journal"], ["token", "inspect"],
        ["send"], ["send", "00", "--topic", TOPIC],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_64(arguments, tmp_path):
    result = herald(*arguments, check=False, cwd=tmp_path)
    assert result.returncode == 64, result.stderr
    assert "Usage: herald" in result.stderr
    assert not list(tmp_path.iterdir()), "wrong usage must change nothing"


@pytest.mark.parametrize("command", ["send", "agent run"])
def test_a_missing_option_prints_the_commands_own_usage(command, tmp_path):
    result = herald(*command.split(), *["00" * 32] * (command == "send"), check=False, cwd=tmp_path)
    assert result.returncode == 64
    # The options follow: each by its name, or "<options>" where there are many.
    usage = re.search(rf"^Usage: herald {command} [\[<]", result.stderr, re.MULTILINE)
    assert usage and f"See 'herald {command} --help'" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["provider", "list"], ["device", "list"], ["provider", "revoke", "x"], ["journal", "--topic", TOPIC],
        ["device", "enroll", "--out", "x.pem"], ["provider", "certificate", "--topic", TOPIC, "--out", "x.pem"],
        ["provider", "key", "--team", TEAM, "--out", "."], ["token", "inspect", "00" * 32],
        ["send", "00" * 32, "--topic", TOPIC, "--alert", "hi"],
    ],
    ids=" ".join,
)
def test_a_missing_folder_is_reported(arguments, tmp_path):
    result = herald(*arguments, "--data", tmp_path / "nowhere", check=False, cwd=tmp_path)
    assert "nowhere" in one_line(result)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments, what",
    [
        (["provider", "certificate", "--topic", "a b", "--out", "{out}"], "a b"),
        (["provider", "certificate", "--topic", TOPIC, "--out", "/dev/null/x.pem"], "/dev/null"),
        (["provider", "certificate", "--topic", TOPIC, "--request", "/dev/null/x.csr", "--out", "{out}"], "/dev/null"),
        (["provider", "certificate", "--topic", TOPIC, "--environment", "moon", "--out", "{out}"], "moon"),
        (["provider", "key", "--team", TEAM, "--out", "/dev/null/x"], "/dev/null"),
        (["provider", "revoke", "nobody"], "nobody"),
        (["device", "revoke", "nobody"], "nobody"),
        (["journal", "not-a-uuid"], "'not-a-uuid' is not an apns-id (a UUID), a device token or a topic"),
        (["journal", "2F7CA8F4-3B5C-4F4E-9F0E-6C0E4D2D2C1"], "is not an apns-id (a UUID)"),
        (["token", "inspect", "zz"], ""),
    ],
)
def test_an_impossible_request_is_reported_in_one_line(shared, tmp_path, arguments, what):
    arguments = [part.format(out=tmp_path / "out.pem") for part in arguments]
    result = herald(*arguments, "--data", shared.data, check=False)
    assert result.returncode in (1, 64), result.stderr
    assert what in result.stderr
    if result.returncode == 1:
        one_line(result)
    assert not (tmp_path / "out.pem").exists()


class TestLists:
    def shown(self, service, path, unknown):
        """The answer of the admin API without the members that only a service knows."""
        status, _, text = ask(service, "GET", path)
        assert status == 200
        return {name: value for name, value in json.loads(text).items() if name not in unknown}

    def test_a_credential_is_what_the_admin_api_shows(self, shared):
        topic = "com.example.listed"
        shared.provider_certificate(topic, f"{topic}.voip", environment="sandbox")
        key = shared.provider_key(topic, team="LISTED0001")
        listed = json.loads(herald("provider", "list", "--data", shared.data, "--json").stdout)
        by_key = next(entry for entry in listed if entry["id"] == key[1])
        assert by_key == {
            "id": key[1], "kind": "key", "team": "LISTED0001", "topics": [topic],
            "environments": ["production", "sandbox"], "created": by_key["created"],
        }
        assert re.fullmatch(DAY, by_key["created"])
        by_certificate = next(entry for entry in listed if topic in entry["topics"] and entry["kind"] == "certificate")
        assert set(by_certificate) == {"id", "kind", "serial", "topics", "environments", "created", "expires"}
        assert sorted(by_certificate["topics"]) == [topic, f"{topic}.voip"]
        assert by_certificate["environments"] == ["sandbox"]
        assert re.fullmatch("[0-9a-f]+", by_certificate["serial"])
        assert re.fullmatch(DAY, by_certificate["expires"])
        counts = {"requests", "refused", "first_used", "last_used"}
        for entry in (by_key, by_certificate):
            assert entry == self.shown(shared, f"/v1/credentials/{quote(entry['id'])}", counts)

    def test_a_device_is_what_the_admin_api_shows(self, shared):
        _, id = shared.device("kitchen")
        listed = json.loads(herald("device", "list", "--data", shared.data, "--json").stdout)
        entry = next(entry for entry in listed if entry["id"] == id)
        assert set(entry) == {"id", "name", "serial", "created", "expires", "labels", "announcement"}
        assert entry["announcement"] == "silent"
        assert entry == self.shown(shared, f"/v1/devices/{id}", {"connected", "waiting", "apps"})
        assert re.fullmatch("[0-9a-f]+", entry["serial"])
        assert re.fullmatch(DAY, entry["created"]) and re.fullmatch(DAY, entry["expires"])

    def test_an_invitation_is_what_the_admin_api_shows(self, shared):
        made = json.loads(herald("device", "invite", "--name", "cellar", "--data", shared.data, "--json").stdout)
        assert made.pop("code") and (made["name"], made["state"], made["used"]) == ("cellar", "open", 0)
        listed = json.loads(herald("device", "invitations", "--data", shared.data, "--json").stdout)
        status, _, text = ask(shared, "GET", "/v1/invitations?limit=1000")
        for entries in (listed, json.loads(text)["items"]):
            assert [entry for entry in entries if entry["id"] == made["id"]] == [made]

    def test_the_default_list_is_a_table(self, shared):
        _, id = shared.device("bathroom")
        text = herald("device", "list", "--data", shared.data).stdout
        (line,) = [line for line in text.splitlines() if id in line]
        assert "bathroom" in line


class TestJournal:
    def test_the_journal_prints_every_state_of_a_notification(self, shared, parties):
        device = away_device(shared)
        first, second = new_id(), new_id()
        with parties.provider() as provider:
            for id in (first, second):
                assert_accepted(provider.push(device.token, id=id), id)
        with device.start():
            assert device.next().id == second
        eventually(lambda: "delivered" in json.dumps(shared.journal(second)), what="the line of the delivery")
        replaced = shared.journal(first)
        assert [line["state"] for line in replaced] == ["received", "stored", "replaced"]
        assert replaced[1]["reason"] == "device offline"
        assert replaced[2]["replacement"].lower() == second
        delivered = shared.journal(second)
        assert [line["state"] for line in delivered] == ["received", "stored", "delivered from storage"]
        for line in replaced + delivered:
            assert re.fullmatch(DAY, line["time"])
            assert (line["topic"], line["device"]) == (TOPIC, device.id)
            assert line["id"].lower() in (first, second)
        assert shared.journal(delivered[0]["unique_id"]) == delivered
        whole = shared.journal("--device", device.id)
        assert [line for line in whole if line["id"].lower() == first] == replaced
        assert [line for line in whole if line["id"].lower() == second] == delivered
        assert len(whole) == 6 and whole == sorted(whole, key=lambda line: line["time"])
        assert {line["topic"] for line in shared.journal("--topic", TOPIC)} == {TOPIC}

    def test_the_journal_prints_a_discarded_notification(self, shared, parties):
        device = away_device(shared)
        with parties.provider() as provider:
            id = provider.push(device.token, expiration=0).id
        assert [line["state"] for line in shared.journal(id)] == ["received", "discarded"]

    def test_the_default_journal_is_text(self, shared, parties):
        with parties.provider() as provider:
            id = provider.push(parties.token).id
        text = herald("journal", "--data", shared.data, id).stdout
        assert "received" in text and "stored" in text and TOPIC in text

    def test_an_empty_result_exits_1_and_names_the_query(self, shared):
        assert shared.journal(new_id()) == []
        id = new_id()
        for question, words in (
            ([id], id.lower()), (["--device", "demo"], "the device demo; `herald device list`"),
            (["--topic", "com.example.never-named"], "the topic com.example.never-named"),
        ):
            result = herald("journal", "--data", shared.data, *question, check=False)
            assert result.returncode == 1 and result.stdout == ""
            assert f"nothing in the journal about {words}" in result.stderr.replace(id.upper(), id.lower())

    def test_a_search_finds_lines_by_their_facts(self, shared, parties):
        with parties.provider() as provider:
            id = provider.push(parties.token).id
        search = lambda *words: herald("journal", "--data", shared.data, *words, check=False)
        lines = json.loads(search(f"topic:{TOPIC} id:{id} state:received after:-10m", "--json").stdout)
        assert [line["state"] for line in lines] == ["received"]
        assert search(f"id:{id} -topic:{TOPIC}").returncode == 1
        token = parties.token if isinstance(parties.token, str) else parties.token.hex()
        assert id.lower() in search(token, "--since", "10m").stdout.lower()
        wrong = search("00" * 32)
        assert wrong.returncode == 1 and "no token key" in wrong.stderr and "00" * 32 not in wrong.stderr
        for words, hint in (("colour:red", "the keys are"), ("state:gone", "received"), ("after:soon", "-2h")):
            assert (result := search(words)).returncode == 64 and hint in result.stderr
        assert "Herald accepted the notification." in search(id, "--explain").stdout

    def test_a_script_waits_for_the_end_of_a_notification(self, shared, parties):
        with parties.provider() as provider:
            discarded = provider.push(parties.token, expiration=0).id
            stored = provider.push(parties.token).id
        wait = lambda *words: herald("journal", "--data", shared.data, *words, check=False)
        assert wait(discarded, "--wait", "30s").returncode == 0
        late = wait(stored, "--wait", "1s", "--until", "delivered")
        assert late.returncode == 1 and "not delivered after 1s" in late.stderr and "stored" in late.stdout

    def test_following_shows_new_lines(self, shared, parties):
        words = ("journal", "--data", shared.data, f"topic:{TOPIC}", "state:discarded", "--since", "10m", "--follow")
        follow = subprocess.Popen([HERALD, *map(str, words)], stdout=subprocess.PIPE, text=True)
        try:
            with parties.provider() as provider:
                id = provider.push(parties.token, expiration=0).id
            assert any(id.lower() in line.lower() for line in follow.stdout)
        finally:
            follow.terminate()
            follow.wait(PATIENCE)
            follow.stdout.close()

    def test_the_journal_is_read_without_a_service(self, fresh):
        service = fresh().start()
        device = away_device(service)
        with Provider(service, service.provider_certificate()) as provider:
            id = provider.push(device.token).id
        running = service.journal(id)
        service.stop()
        assert service.journal(id) == running


class TestTokens:
    def test_inspect_describes_a_token(self, shared):
        device = away_device(shared)
        result = herald("token", "inspect", device.token, "--data", shared.data, "--json")
        text = json.dumps(json.loads(result.stdout))
        for part in (device.id, TOPIC, "production"):
            assert part in text
        result = herald("token", "inspect", device.token.upper(), "--data", shared.data)
        assert device.id in result.stdout and TOPIC in result.stdout

    def test_inspect_reports_a_dead_token(self, shared, parties):
        result = herald("token", "inspect", parties.dead_token, "--data", shared.data, "--json")
        died = json.dumps(json.loads(result.stdout))
        result = herald("token", "inspect", parties.token, "--data", shared.data, "--json")
        lives = json.dumps(json.loads(result.stdout))
        assert json.loads(died).keys() != json.loads(lives).keys() or "false" in died

    def test_inspect_rejects_a_token_of_another_service(self, shared, parties, fresh):
        other = fresh()
        other.start()
        result = herald("token", "inspect", parties.token, "--data", other.data, check=False)
        assert "BadDeviceToken" in result.stdout + result.stderr


class TestSend:
    def options(self, service):
        return ["--service", f"127.0.0.1:{service.listeners['api']}", "--ca", service.ca, "--topic", TOPIC]

    def test_a_notification_is_sent_by_certificate_and_by_key(self, shared, parties):
        path, kid, team = parties.key
        with listening_device(shared) as device:
            herald("send", device.token, *self.options(shared), "--certificate", parties.certificate, "--alert", "hi")
            assert device.next().json == {"aps": {"alert": "hi"}}
            result = herald(
                "send", device.token, *self.options(shared), "--key", path, "--key-id", kid, "--team", team,
                "--title", "Chat", "--alert", "hi", "--badge", 3, "--sound", "default", "--priority", 5,
                "--collapse-id", "c", "--json",
            )
            message = device.next()
            assert message.json == {"aps": {"alert": {"title": "Chat", "body": "hi"}, "badge": 3, "sound": "default"}}
            assert message.property("apns-priority") == "5"
            assert message.property("apns-collapse-id") == "c"
            assert message.id == json.loads(result.stdout)["apns_id"].lower()

    def test_a_payload_is_sent_unchanged(self, shared, parties, tmp_path):
        payload = tmp_path / "payload.json"
        payload.write_text(json.dumps(HELLO, indent=3))
        with listening_device(shared) as device:
            herald(
                "send", device.token, *self.options(shared), "--certificate", parties.certificate, "--payload", payload,
                "--push-type", "background", "--priority", 5,
            )
            message = device.next()
            herald(
                "send", device.token, *self.options(shared), "--certificate", parties.certificate, "--payload", "-",
                input=payload.read_text().replace("hello", "standard input"),
            )
            assert b"standard input" in device.next().payload
        assert message.payload == payload.read_bytes()
        assert message.property("apns-push-type") == "background"

    def test_options_may_come_from_a_file_or_the_environment(self, shared, parties, tmp_path):
        port = shared.listeners["api"]
        file = tmp_path / "send.yaml"
        file.write_text(
            f"service: 127.0.0.1:{port}\nca: {shared.ca}\ntopic: {TOPIC}\ncertificate: {parties.certificate}\n"
            "alert: from the file\nbadge: 7\npriority: 5\n"
        )
        environment = {**os.environ, "HERALD_ALERT": "from the environment", "HERALD_CONFIG": str(file)}
        with listening_device(shared) as device:
            herald("send", device.token, "--priority", 10, env=environment)
            message = device.next()
            assert message.json == {"aps": {"alert": "from the environment", "badge": 7}}
            assert message.property("apns-priority") == "10"
            # The data folder has the service's address and its authority.
            file.write_text(f"data: {shared.data}\ntopic: {TOPIC}\ncertificate: {parties.certificate}\nsound: default\n")
            herald("send", device.token, "--config", file)
            assert device.next().json == {"aps": {"sound": "default"}}

    def test_a_mistake_in_the_file_is_reported_with_its_line(self, shared, tmp_path):
        file = tmp_path / "send.yaml"
        for text, words in (("\ntopik: x\n", "2: unknown key `topik`: did you mean `topic`?"), ("badge: many\n", "whole number")):
            file.write_text(text)
            for command in (["send", "00" * 32], ["agent", "run"]):
                assert words in one_line(herald(*command, "--config", file, check=False))

    def test_an_agent_reads_its_options_from_a_file(self, shared, tmp_path):
        path, _ = shared.device()
        file = tmp_path / "agent.yaml"
        file.write_text(
            f"service: 127.0.0.1\ndevice-port: {shared.listeners['device']}\nca: {shared.ca}\nidentity: {path}\n"
            f"app: [{TOPIC}, {TOPIC}.voip]\n"
        )
        agent = subprocess.Popen(
            [HERALD, "agent", "run", "--config", file, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            topics = set()
            while topics != {TOPIC, f"{TOPIC}.voip"}:
                line = agent.stdout.readline()
                assert line, agent.stderr.read()
                topics |= {topic for topic in (TOPIC, f"{TOPIC}.voip") if f'"{topic}"' in line}
        finally:
            agent.terminate()
            agent.communicate(timeout=PATIENCE)

    def test_a_refusal_is_reported_and_exits_1(self, shared, parties):
        result = herald(
            "send", "00" * 32, *self.options(shared), "--certificate", parties.certificate, "--alert", "hi", check=False
        )
        assert "BadDeviceToken" in one_line(result)

    def test_a_silent_service_is_reported(self, shared, parties):
        result = herald(
            "send", "00" * 32, "--service", "127.0.0.1:9", "--ca", shared.ca, "--topic", TOPIC,
            "--certificate", parties.certificate, "--alert", "hi", check=False,
        )
        assert "127.0.0.1:9" in one_line(result)

    def test_an_unknown_authority_is_reported_with_the_remedy(self, shared, parties, tmp_path):
        result = herald(
            "send", "00" * 32, "--service", f"localhost:{shared.listeners['api']}", "--topic", TOPIC,
            "--certificate", parties.certificate, "--alert", "hi", check=False, cwd=tmp_path,
        )
        assert one_line(result).endswith("give its ca.pem with --ca, or its folder with --data")

    def test_a_name_missing_in_the_certificate_is_reported_with_the_remedy(self, shared, parties):
        result = herald(
            "send", "00" * 32, "--service", f"127.0.0.2:{shared.listeners['api']}", "--ca", shared.ca, "--topic", TOPIC,
            "--certificate", parties.certificate, "--alert", "hi", check=False,
        )
        if "cannot reach" not in result.stderr:
            assert "does not name 127.0.0.2" in one_line(result) and "--hostname 127.0.0.2" in one_line(result)

    def test_the_environment_is_an_option(self, shared, parties):
        """By the name sandbox.localhost, which is this machine's whatever its resolver knows."""
        with listening_device(shared) as device:
            options = ["--data", shared.data, "--topic", TOPIC, "--certificate", parties.certificate, "--alert", "hi"]
            refused = herald("send", device.token, *options, "--environment", "sandbox", check=False)
            assert "BadDeviceToken" in one_line(refused)
            herald("send", device.token, *options, "--environment", "production")
            assert device.next().json == {"aps": {"alert": "hi"}}


class TestStatus:
    def test_status_waits_until_the_service_is_ready(self, fresh):
        service = fresh()
        waiting = subprocess.Popen(
            [HERALD, "status", "--data", service.data, "--wait", "60", "--json"], stdout=subprocess.PIPE, text=True
        )
        try:
            service.start()
            output, _ = waiting.communicate(timeout=PATIENCE)
        finally:
            waiting.kill()
        assert waiting.returncode == 0
        status = json.loads(output)
        assert status["ready"] and status["problems"] == [] and status["listeners"] == service.listeners
        assert status["service"]["pid"] == service.pid and status["service"]["devices_connected"] == 0
        lines = herald("status", "--data", service.data).stdout.splitlines()
        assert f"provider API   https://127.0.0.1:{service.listeners['api']}" in lines and lines[-1] == "health         ready"

    def test_status_tells_the_addresses_to_a_shell(self, fresh, tmp_path):
        """Also if the path of the data folder has a space in it."""
        service = fresh(data=tmp_path / "in a test")
        absent = herald("status", "--data", service.data, "--env", check=False)
        assert absent.returncode == 1 and not absent.stdout and "there is no data folder" in absent.stderr
        service.start()
        script = 'eval "$("$0" status --data "$1" --env)"; curl --silent --cacert "$APNS_CA_FILE" --http2 '
        script += '"https://$APNS_HOST:$APNS_PORT/" --output /dev/null --write-out "%{http_code} $HERALD_DATA $MQTT_PORT $CONSOLE_URL"'
        result = subprocess.run(["sh", "-c", script, HERALD, service.data], capture_output=True, text=True, timeout=PATIENCE)
        ports = service.listeners
        assert result.stdout == f"405 {service.data} {ports['device']} http://localhost:{ports['console']}", result.stderr

    def test_the_variables_open_the_console(self, shared):
        script = 'eval "$("$0" status --data "$1" --env)"; curl --silent --fail -H "authorization: Bearer $CONSOLE_TOKEN" "$CONSOLE_URL/v1/status"'
        result = subprocess.run(["sh", "-c", script, HERALD, shared.data], capture_output=True, text=True, timeout=PATIENCE)
        assert json.loads(result.stdout)["pid"] == shared.pid

    @pytest.mark.parametrize("known", [False, True], ids=["a new folder", "a known folder"])
    def test_status_ends_with_the_reason_when_the_service_does(self, tmp_path, known):
        """Whichever of the two is quicker."""
        folder = tmp_path / "data"
        if known:
            herald("init", "--data", folder)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            command = [HERALD, "status", "--data", folder, "--wait", "10m"]
            waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                failed = failed_start(folder, "--api-port", taken.getsockname()[1])
                _, said = waiting.communicate(timeout=PATIENCE)
            finally:
                waiting.kill()
            late = herald("status", "--data", folder, "--wait", "10m", check=False) if known else None
        why = failed.stderr.strip().splitlines()[-1].removeprefix("herald: ")
        assert waiting.returncode == 1 and said == f"herald: the service ended: {why}\n"
        assert late is None or one_line(late) == said.strip()

    def test_status_ends_when_the_service_is_killed(self, fresh):
        service = fresh("--clock", "adjustable").start()
        os.kill(service.pid, signal.SIGSTOP)
        waiting = subprocess.Popen([HERALD, "status", "--data", service.data, "--wait", "10m"], stderr=subprocess.PIPE, text=True)
        try:
            eventually(lambda: (service.data / "run" / "serve.json").exists(), what="the record of the start")
            os.kill(service.pid, signal.SIGKILL)
            _, said = waiting.communicate(timeout=PATIENCE)
        finally:
            waiting.kill()
        assert waiting.returncode == 1 and "without a word" in said

    def test_status_without_a_service_exits_1(self, fresh, tmp_path):
        service = fresh().start()
        service.stop()
        for folder, words in ((service.data, "no service answers"), (tmp_path / "nowhere", "there is no data folder")):
            result = herald("status", "--data", folder, "--wait", "0", check=False)
            assert result.returncode == 1 and words in result.stdout and f"`herald serve --data {folder}`" in result.stdout
            assert json.loads(herald("status", "--data", folder, "--json", check=False).stdout)["ready"] is False
