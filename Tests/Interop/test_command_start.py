"""`herald serve`: what it prints, where its settings come from, and what it does not start on."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess

import pytest

from commands import PORTS, one_line, serve_in_vain
from parties import assert_accepted
from private_mounts import in_private_mounts, mount
from provider import Disconnected, Provider, away_device
from service import HERALD, Service, herald

def content(folder):
    """What a folder holds, apart from what belongs to the run."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "run" not in path.relative_to(folder).parts
    }


#: The public half of the authority, the server's certificate, and the lists that follow from the ledger.
REPLACEABLE = ("ca.pem", "trust/server.pem", "trust/device.crl", "trust/provider.crl")


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


class TestDoors:
    def test_each_door_has_a_line_and_then_it_is_ready(self, fresh):
        service = fresh()
        service.start()
        printed = service.lines[: service.lines.index("ready") + 1]
        doors = service.doors
        expected = [
            f"provider API   https://127.0.0.1:{doors['api']}",
            f"binary         tls://127.0.0.1:{doors['binary']}",
            f"feedback       tls://127.0.0.1:{doors['feedback']}",
            f"devices        mqtts://127.0.0.1:{doors['device']}",
            f"activation     https://127.0.0.1:{doors['activation']}",
            f"console        http://127.0.0.1:{doors['console']}",
            "ready",
        ]
        assert [line for line in printed if line in expected] == expected
        text = (service.data / "run" / "doors.json").read_text()
        assert text.startswith('{"api":') and json.loads(text) == doors
        assert list(doors) == ["api", "binary", "feedback", "device", "activation", "console", "pid"]
        assert doors["pid"] == service.process.pid
        assert len(set(doors.values())) == len(doors)

    def test_a_clean_stop_leaves_no_doors_and_exits_0(self, fresh):
        for number in (signal.SIGTERM, signal.SIGINT):
            service = fresh().start()
            os.kill(service.pid, number)
            assert service.process.wait(timeout=20) == 0
            assert not (service.data / "run" / "doors.json").exists()
            assert not (service.data / "run" / "control.sock").exists()

    def test_what_a_kill_left_does_not_hinder_the_next_start(self, fresh):
        service = fresh().start()
        service.kill()
        assert (service.data / "run" / "doors.json").exists()
        service.start()
        assert service.doors["pid"] == service.process.pid

    def test_all_doors_but_the_console_listen_where_they_are_told(self, fresh):
        service = fresh("--host", "127.0.0.2").start()
        for door in "api", "binary", "feedback", "device", "activation":
            with socket.create_connection(("127.0.0.2", service.doors[door])):
                pass
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", service.doors[door]))
        with socket.create_connection(("127.0.0.1", service.doors["console"])):
            pass

    @pytest.mark.parametrize("door", ["api", "binary", "feedback", "device", "activation", "console"])
    def test_an_occupied_port_is_told(self, tmp_path, door):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = serve_in_vain(tmp_path / "data", f"--{door}-port", port)
        line = one_line(result)
        assert str(port) in line and f"--{door}-port" in line
        assert "ready" not in result.stdout
        assert not (tmp_path / "data" / "run" / "doors.json").exists()

    def test_an_address_that_is_not_ours_is_told(self, tmp_path):
        assert "192.0.2.1" in one_line(serve_in_vain(tmp_path / "data", "--host", "192.0.2.1"))


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
            assert process.wait(timeout=20) == 0

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
            ("api-port: 1\nhost: ::1\napi-port: 2\n", ["herald.yaml:3: the key `api-port` is there twice"]),
            ("\t\x00", []),
            ('"unclosed', []),
            ("*anchor", []),
        ],
    )
    def test_a_wrong_file_is_told(self, tmp_path, text, told):
        file = tmp_path / "herald.yaml"
        file.write_text(text)
        line = one_line(serve_in_vain(tmp_path / "data", "--config", file))
        assert "herald.yaml" in line or any(word in line for word in told)
        assert all(word in line for word in told)
        assert not (tmp_path / "data").exists()

    @pytest.mark.parametrize("option", ["binary-payload-size", "binary-in-hand", "feedback-size"])
    def test_what_the_older_doors_hold_is_an_option_too(self, tmp_path, option):
        line = one_line(serve_in_vain(tmp_path / "data", f"--{option}", 0))
        assert f"{option} cannot be \"0\"" in line

    def test_a_file_that_cannot_be_read_is_told(self, tmp_path):
        for path in (tmp_path / "nothing.yaml", tmp_path):
            assert str(path) in one_line(serve_in_vain(tmp_path / "data", "--config", path))

    def test_an_empty_file_says_nothing(self, fresh, tmp_path):
        file = tmp_path / "herald.yaml"
        file.write_text("# nothing yet\n")
        fresh("--config", str(file)).start()

    @pytest.mark.parametrize("variable, value", [("HERALD_API_PORT", "many"), ("HERALD_DEMO", "perhaps")])
    def test_a_wrong_variable_is_told(self, tmp_path, variable, value):
        options = [] if variable != "HERALD_API_PORT" else None
        command = [HERALD, "serve", "--data", tmp_path / "data", *(PORTS if options is not None else PORTS[2:])]
        result = subprocess.run(command, env={**os.environ, variable: value}, capture_output=True, text=True, timeout=30)
        assert variable in one_line(result)

    def test_the_folder_of_a_command_may_come_from_file_or_environment(self, used, tmp_path):
        service, _, device = used
        file = tmp_path / "herald.yaml"
        file.write_text(f"data: {service.data}\n")
        assert device.id in herald("device", "list", "--config", file).stdout
        assert device.id in herald("device", "list", env={**os.environ, "HERALD_DATA": str(service.data)}).stdout


class TestFolders:
    def test_a_folder_of_others_is_left_alone(self, tmp_path):
        (tmp_path / "letter.txt").write_text("dear")
        before = content(tmp_path)
        for command in (["serve", *PORTS], ["init"], ["device", "list"], ["device", "enroll", "--out", "/nowhere"]):
            line = one_line(herald(*command, "--data", tmp_path, check=False))
            assert str(tmp_path) in line
        assert content(tmp_path) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["letter.txt"]

    def test_a_file_in_place_of_the_folder_is_told(self, tmp_path):
        path = tmp_path / "data"
        path.write_text("")
        assert str(path) in one_line(serve_in_vain(path))

    def test_a_folder_of_a_newer_version_is_left_alone(self, used):
        service, _, _ = used
        path = service.data / "format"
        path.write_text("herald 99\n")
        before = content(service.data)
        assert "newer" in one_line(serve_in_vain(service.data))
        assert content(service.data) == before

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
                result = serve_briefly(service)
                what = f"{name} {'gone' if damage is None else 'damaged' if damage else 'empty'}"
                if result is None:
                    passed.add(what)
                else:
                    line = one_line(result)
                    assert len(line) > 30, what
                    after = content(service.data)
                    changed = {part for part in before if after.get(part) != before[part]}
                    assert not changed, f"{what}: {changed} changed"
                path.write_bytes(original)
                path.chmod(0o600 if name.parts[0] in ("trust", "store") else 0o644)
        assert_works(service, certificate, device)
        # What can be made again from the rest is; all else is irreplaceable, and must not be begun anew in silence.
        irreplaceable = sorted(what for what in passed if not what.startswith(REPLACEABLE))
        assert not irreplaceable, ", ".join(irreplaceable)

    @pytest.mark.parametrize("name", ["ca.pem", "trust/provider.crl", "trust/server.pem"])
    @pytest.mark.parametrize("damage", [None, b"", b"nonsense"], ids=["gone", "empty", "damaged"])
    def test_what_is_made_again_says_what_it_said(self, used, name, damage):
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
            line = one_line(serve_in_vain(service.data))
            assert path.name in line or "store" in line
            assert path.read_bytes() == damage

    def test_a_store_begun_anew_gives_nobody_the_token_of_another(self, used):
        """Who lost the database, and says so by removing it, must not hand one device's notifications to another."""
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

    def test_a_restored_store_gives_nobody_the_token_of_another(self, used, tmp_path):
        """Who registered after the backup was made is forgotten; whoever comes next is somebody else."""
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

    def test_a_database_of_a_newer_schema_is_told(self, used):
        service, _, _ = used
        path = next(path for path in (service.data / "store").iterdir() if path.read_bytes()[:15] == b"SQLite format 3")
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE IF NOT EXISTS grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
            database.execute("INSERT INTO grdb_migrations VALUES ('from the future')")
            database.execute("PRAGMA user_version = 9999")
        database.close()
        one_line(serve_in_vain(service.data))

    def test_two_services_never_share_a_folder(self, shared):
        line = one_line(serve_in_vain(shared.data))
        assert str(shared.pid) in line or "in use" in line or str(shared.data) in line
        assert json.loads((shared.data / "run" / "doors.json").read_text()) == shared.doors
        assert herald("device", "list", "--data", shared.data, check=False).returncode == 0

    @in_private_mounts
    def test_a_folder_that_cannot_be_written_is_told(self, tmp_path):
        folder = tmp_path / "readonly"
        folder.mkdir()
        mount(folder, "tmpfs")
        service = Service(folder / "data")
        herald("init", "--data", service.data)
        mount(folder, "remount,ro")
        try:
            assert str(service.data) in one_line(serve_in_vain(service.data))
            assert str(folder) in one_line(serve_in_vain(folder / "another"))
            command = ["device", "enroll", "--data", service.data, "--out", tmp_path / "x.pem"]
            one_line(herald(*command, check=False))
        finally:
            service.close()


def serve_briefly(service):
    """A start on a folder that may be damaged: the result if it failed, None if it was ready and stopped again."""
    before = len(service.lines)
    try:
        service.start()
    except AssertionError:
        return subprocess.CompletedProcess([], service.process.returncode, "", "\n".join(service.lines[before:]))
    service.stop()
    return None
