"""`herald serve`: what it prints, where its settings come from, and what it does not start on."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess

import pytest

from commands import PORTS, failed_start, one_line
from parties import assert_accepted
from private_mounts import in_private_mounts, mount
from provider import Disconnected, Provider, away_device, listening_sockets
from service import HERALD, PATIENCE, Service, herald

def content(folder):
    """The files of a folder, apart from those of the running process."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "run" not in path.relative_to(folder).parts
    }


#: The public half of the authority, the server's certificate, and what follows from the ledger and `ca.pem`. The key of
#: announcements may be kept elsewhere.
REPLACEABLE = (
    "ca.pem", "trust/server.pem", "trust/device.crl", "trust/provider.crl", "trust/announcement.jws", "trust/announcement.key gone", "audit/",
)


@pytest.fixture
def used(fresh):
    """A service that has been in use and is stopped: it has a device, a credential and a stored notification."""
    service = fresh().start()
    device = away_device(service)
    certificate = service.provider_certificate()
    with Provider(service, certificate) as provider:
        assert_accepted(provider.push(device.token))
    service.stop()
    return service, certificate, device


def assert_works(service, certificate, device):
    """The service is whole: its device gets what was stored, and what comes."""
    service.start()
    with device.start(), Provider(service, certificate) as provider:
        device.next()
        assert_accepted(provider.push(device.token))
        device.next()


class TestListeners:
    def test_each_listener_is_printed_before_ready(self, fresh):
        service = fresh()
        service.start()
        printed = service.lines[: service.lines.index("ready") + 1]
        listeners = service.listeners
        expected = [
            f"provider API   https://127.0.0.1:{listeners['api']}",
            f"binary         tls://127.0.0.1:{listeners['binary']}",
            f"feedback       tls://127.0.0.1:{listeners['feedback']}",
            f"devices        mqtts://127.0.0.1:{listeners['device']}",
            f"activation     https://127.0.0.1:{listeners['activation']}",
            f"console        http://127.0.0.1:{listeners['console']}",
            "ready",
        ]
        assert [line for line in printed if line in expected] == expected
        text = (service.data / "run" / "listeners.json").read_text()
        assert json.loads(text) == listeners
        assert sorted(listeners) == [
            "activation", "api", "binary", "console", "console_host", "console_tls", "device", "feedback", "host", "name", "pid"
        ]
        assert listeners.pop("pid") == service.process.pid
        assert listeners.pop("host") == listeners.pop("console_host") == "127.0.0.1"
        assert len(set(listeners.values())) == len(listeners)

    def test_a_clean_stop_removes_the_listeners_file_and_exits_0(self, fresh):
        for number in (signal.SIGTERM, signal.SIGINT):
            service = fresh().start()
            os.kill(service.pid, number)
            assert service.process.wait(timeout=PATIENCE) == 0
            assert not (service.data / "run" / "listeners.json").exists()
            assert not (service.data / "run" / "control.sock").exists()

    def test_a_service_starts_after_a_kill(self, fresh):
        service = fresh().start()
        service.kill()
        assert (service.data / "run" / "listeners.json").exists()
        service.start()
        assert service.listeners["pid"] == service.process.pid

    def test_the_host_applies_to_all_listeners_but_the_console(self, fresh):
        service = fresh("--host", "127.0.0.2").start()
        listeners = service.listeners
        told = {("127.0.0.2", listeners[name]) for name in ("api", "binary", "feedback", "device", "activation")}
        assert listening_sockets(service.pid) == told | {("127.0.0.1", listeners["console"])}
        for address in told:
            with socket.create_connection(address):
                pass

    @pytest.mark.parametrize("listener", ["api", "binary", "feedback", "device", "activation", "console"])
    def test_an_occupied_port_is_reported(self, tmp_path, listener):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = failed_start(tmp_path / "data", f"--{listener}-port", port)
        line = one_line(result)
        assert str(port) in line and f"--{listener}-port" in line
        assert "ready" not in result.stdout
        assert not (tmp_path / "data" / "run" / "listeners.json").exists()

    def test_an_address_of_another_machine_is_reported(self, tmp_path):
        assert "192.0.2.1" in one_line(failed_start(tmp_path / "data", "--host", "192.0.2.1"))
        line = one_line(failed_start(tmp_path / "data", "--host", "push.invalid"))
        assert "push.invalid is not an address of this machine" in line and "--hostname" in line


class TestSettings:
    def test_the_command_line_wins_over_the_environment_and_that_over_the_file(self, tmp_path):
        file = tmp_path / "herald.yaml"
        file.write_text("console-host: 127.0.0.2\nhost: 127.0.0.2\nlog-format: json\ndevice-port: 0\n")
        environment = {**os.environ, "HERALD_HOST": "127.0.0.3", "HERALD_CONSOLE_HOST": "127.0.0.3", "HERALD_API_PORT": "0"}
        process = subprocess.Popen(
            [HERALD, "serve", "--data", tmp_path / "data", "--config", file, "--console-host", "127.0.0.4",
             "--console-port", "0", "--activation-port", "0"],
            env=environment, stdout=subprocess.PIPE, text=True,
        )
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line == "ready\n":
                    break
            text = "".join(lines)
            assert "https://127.0.0.3:" in text and "mqtts://127.0.0.3:" in text and "http://127.0.0.4:" in text
        finally:
            process.terminate()
            assert process.wait(timeout=PATIENCE) == 0

    @pytest.mark.parametrize(
        "text, told",
        [
            ("api-prot: 1\n", ["api-prot", "api-port"]),
            ("a: 1\n", ["a"]),
            ("api-port: many\n", ["api-port"]),
            ("api-port: [1]\n", ["api-port"]),
            ("binary-payload-size: 70000\n", ["binary-payload-size", "2048"]),
            ("environment: moon\n", ["environment", "sandbox"]),
            ("log-level: loud\n", ["log-level"]),
            ("hostname: {a: b}\n", ["hostname"]),
            ("- api-port\n", []),
            ("api-port: 1: 2\n", ["herald.yaml:1: this is not YAML (mapping values are not allowed"]),
            ("api-port: 1\nhost: ::1\napi-port: 2\n", ["herald.yaml:3: the key `api-port` appears twice"]),
            ("\t\x00", []),
            ('"unclosed', []),
            ("*anchor", []),
        ],
    )
    def test_a_wrong_file_is_reported(self, tmp_path, text, told):
        file = tmp_path / "herald.yaml"
        file.write_text(text)
        line = one_line(failed_start(tmp_path / "data", "--config", file))
        assert "herald.yaml" in line or any(word in line for word in told)
        assert all(word in line for word in told)
        assert not (tmp_path / "data").exists()

    @pytest.mark.parametrize("option", ["binary-payload-size", "binary-in-flight", "feedback-size"])
    def test_limits_of_the_older_interfaces_are_options(self, tmp_path, option):
        line = one_line(failed_start(tmp_path / "data", f"--{option}", 0))
        assert f"{option} cannot be \"0\"" in line

    def test_an_unreadable_file_is_reported(self, tmp_path):
        for path in (tmp_path / "nothing.yaml", tmp_path):
            assert str(path) in one_line(failed_start(tmp_path / "data", "--config", path))

    def test_an_empty_file_changes_nothing(self, fresh, tmp_path):
        file = tmp_path / "herald.yaml"
        file.write_text("# nothing yet\n")
        fresh("--config", str(file)).start()

    @pytest.mark.parametrize("variable, value", [("HERALD_API_PORT", "many"), ("HERALD_DEMO", "perhaps")])
    def test_a_wrong_variable_is_reported(self, tmp_path, variable, value):
        options = [] if variable != "HERALD_API_PORT" else None
        command = [HERALD, "serve", "--data", tmp_path / "data", *(PORTS if options is not None else PORTS[2:])]
        result = subprocess.run(command, env={**os.environ, variable: value}, capture_output=True, text=True, timeout=PATIENCE)
        assert variable in one_line(result)

    def test_the_folder_of_a_command_may_come_from_file_or_environment(self, used, tmp_path):
        service, _, device = used
        file = tmp_path / "herald.yaml"
        file.write_text(f"data: {service.data}\n")
        assert device.id in herald("device", "list", "--config", file).stdout
        assert device.id in herald("device", "list", env={**os.environ, "HERALD_DATA": str(service.data)}).stdout


class TestFolders:
    def test_a_folder_with_other_files_is_left_alone(self, tmp_path):
        (tmp_path / "note.txt").write_text("dear")
        before = content(tmp_path)
        for command in (["serve", *PORTS], ["init"], ["device", "list"], ["device", "enroll", "--out", "/nowhere"]):
            line = one_line(herald(*command, "--data", tmp_path, check=False))
            assert str(tmp_path) in line
        assert content(tmp_path) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["note.txt"]

    def test_a_file_in_place_of_the_folder_is_reported(self, tmp_path):
        path = tmp_path / "data"
        path.write_text("")
        assert str(path) in one_line(failed_start(path))

    def test_a_folder_of_a_newer_version_is_left_alone(self, used):
        service, _, _ = used
        path = service.data / "format"
        path.write_text("herald 99\n")
        before = content(service.data)
        assert "newer" in one_line(failed_start(service.data))
        assert content(service.data) == before

    @pytest.mark.slow
    @pytest.mark.timeout(900)
    def test_a_damaged_part_is_named_and_nothing_is_overwritten(self, used):
        """Each file of the folder in turn is gone, is empty, or has its beginning overwritten."""
        service, certificate, device = used
        whole = content(service.data)
        passed = set()
        for name, original in whole.items():
            path = service.data / name
            if path.name.endswith(("-wal", "-shm")) or not original:
                continue
            for damage in (None, b"", b"\xde\xad\xbe\xef" * 16 + original[64:]):
                if damage is None:
                    path.unlink()
                else:
                    path.write_bytes(damage)
                before = content(service.data)
                what = f"{name} {'gone' if damage is None else 'damaged' if damage else 'empty'}"
                failures = doctors_failures(service)
                assert content(service.data) == before, f"{what}: the doctor changed it"
                result = serve_briefly(service)
                assert bool(failures) == (result is not None), f"{what}: {failures}, {result}"
                if result is None:
                    passed.add(what)
                else:
                    line = one_line(result)
                    assert len(line) > 30, what
                    after = content(service.data)
                    changed = {part for part in before if after.get(part) != before[part]}
                    assert not changed, f"{what}: {changed} changed"
                path.write_bytes(original)
                path.chmod(0o600 if name.parts[0] in ("trust", "store", "audit") else 0o644)
        assert_works(service, certificate, device)
        # Replaceable files are made again. An irreplaceable file must not be replaced in silence.
        irreplaceable = sorted(what for what in passed if not what.startswith(REPLACEABLE))
        assert not irreplaceable, ", ".join(irreplaceable)

    @pytest.mark.parametrize("name", ["ca.pem", "trust/provider.crl", "trust/server.pem"])
    @pytest.mark.parametrize("damage", [None, b"", b"nonsense"], ids=["gone", "empty", "damaged"])
    def test_a_replaceable_file_is_restored_with_its_content(self, used, name, damage):
        """Also who was revoked."""
        service, certificate, device = used
        revoked = service.provider_certificate("com.example.revoked")
        listed = json.loads(herald("provider", "list", "--data", service.data, "--json").stdout)
        (id,) = [entry["id"] for entry in listed if entry["topics"] == ["com.example.revoked"]]
        herald("provider", "revoke", "--data", service.data, id)
        authority = service.ca.read_bytes()
        path = service.data / name
        path.unlink() if damage is None else path.write_bytes(damage)
        result = serve_briefly(service)
        if result is not None:
            assert path.name in one_line(result)
            return
        assert service.ca.read_bytes() == authority
        assert_works(service, certificate, device)
        with pytest.raises((Disconnected, OSError)), Provider(service, revoked) as provider:
            provider.push(device.token)

    def test_a_damaged_database_is_not_served(self, used):
        service, _, _ = used
        (path,) = [
            path for path in (service.data / "store").iterdir() if path.read_bytes()[:15] == b"SQLite format 3"
        ][:1]
        original = path.read_bytes()
        for damage in (b"", b"not a database" * 100, original[:100] + bytes(len(original) - 100)):
            for side in ("-wal", "-shm"):
                path.with_name(path.name + side).unlink(missing_ok=True)
            path.write_bytes(damage)
            line = one_line(failed_start(service.data))
            assert path.name in line or "store" in line
            assert path.read_bytes() == damage

    def test_a_new_store_reuses_no_device_token(self, used):
        """A store that replaces a removed database must not hand one device's notifications to another."""
        service, certificate, device = used
        for path in (service.data / "store").glob("herald.db*"):
            path.unlink()
        if serve_briefly(service) is not None:
            return
        service.start()
        another = away_device(service)
        assert another.token != device.token
        with Provider(service, certificate) as provider:
            assert provider.push(device.token).status in (400, 410)

    def test_a_restored_store_reuses_no_device_token(self, used, tmp_path):
        """A device registered after the backup is forgotten, and its token is never given to the next device."""
        service, certificate, _ = used
        shutil.copytree(service.data / "store", tmp_path / "backup")
        service.start()
        forgotten = away_device(service)
        service.stop()
        shutil.rmtree(service.data / "store")
        shutil.copytree(tmp_path / "backup", service.data / "store")
        service.start()
        another = away_device(service)
        assert another.token != forgotten.token
        with Provider(service, certificate) as provider:
            assert provider.push(forgotten.token).status in (400, 410)

    def test_a_restored_store_gives_no_app_the_token_of_another(self, used, tmp_path):
        """An app that a device registered after the backup, and one that it registers after the restore."""
        service, _, _ = used
        service.start()
        enrolled = service.device()
        away_device(service, enrolled=enrolled)
        service.stop()
        shutil.copytree(service.data / "store", tmp_path / "backup")
        service.start()
        lost = away_device(service, "com.example.lost", enrolled=enrolled).token
        service.stop()
        shutil.rmtree(service.data / "store")
        shutil.copytree(tmp_path / "backup", service.data / "store")
        service.start()
        assert away_device(service, "com.example.new", enrolled=enrolled).token != lost
        for topic in ("com.example.lost", "com.example.new"):
            with Provider(service, service.provider_certificate(topic), topic=topic) as provider:
                assert provider.push(lost).status in (400, 410)

    def test_a_database_of_a_newer_schema_is_reported(self, used):
        service, _, _ = used
        path = next(path for path in (service.data / "store").iterdir() if path.read_bytes()[:15] == b"SQLite format 3")
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 9999")
        database.close()
        one_line(failed_start(service.data))

    def test_two_services_never_share_a_folder(self, shared):
        line = one_line(failed_start(shared.data))
        assert str(shared.pid) in line or "in use" in line or str(shared.data) in line
        assert json.loads((shared.data / "run" / "listeners.json").read_text()) == shared.listeners
        assert herald("device", "list", "--data", shared.data, check=False).returncode == 0

    @in_private_mounts
    def test_an_unwritable_folder_is_reported(self, tmp_path):
        folder = tmp_path / "readonly"
        folder.mkdir()
        mount(folder, "tmpfs")
        service = Service(folder / "data")
        herald("init", "--data", service.data)
        mount(folder, "remount,ro")
        try:
            assert str(service.data) in one_line(failed_start(service.data))
            assert str(folder) in one_line(failed_start(folder / "another"))
            command = ["device", "enroll", "--data", service.data, "--out", tmp_path / "x.pem"]
            one_line(herald(*command, check=False))
        finally:
            service.close()


def doctors_failures(service):
    """The findings of the doctor that keep a service from starting on this folder."""
    command = [HERALD, "doctor", "--data", service.data, "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout)
    return [check for check in report["checks"] if check["level"] == "fail" and check["area"] in ("data", "files", "store", "trust")]


def serve_briefly(service):
    """A start on a folder that may be damaged: the result if it failed, None if it was ready and stopped again."""
    before = len(service.lines)
    try:
        service.start()
    except AssertionError:
        return subprocess.CompletedProcess([], service.process.returncode, "", "\n".join(service.lines[before:]))
    service.stop()
    return None
