"""`herald doctor`: what of a machine keeps a service from working is found, and told with what to do."""

import json
import os
import pathlib
import socket
import sqlite3
import subprocess
import tempfile

import pytest

from machine_clock import MachineClock
from service import HERALD, PATIENCE, Service, free_port, herald

PORTS = ("api-port", "binary-port", "feedback-port", "device-port", "activation-port", "console-port")


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


class Machine:
    """A data folder and a configuration file, whose ports are free."""

    def __init__(self, folder):
        self.data, self.config = folder / "data", folder / "herald.yaml"
        self.ports = {name: free_port() for name in PORTS}
        self.write()

    def write(self, **more):
        keys = {"data": self.data, **self.ports, **more}
        self.config.write_text("".join(f"{name}: {value}\n" for name, value in keys.items()))

    def doctor(self, prefix=()):
        """The report as JSON."""
        command = [*prefix, HERALD, "doctor", "--config", self.config, "--json"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        report = json.loads(result.stdout)
        assert (result.returncode == 0) == report["ok"] == (not self.of(report, "fail"))
        # An error or a fault of the health says itself what helps, and gets no second order.
        told = {"service", "data", "store", "trust"}
        assert all(check.get("remedy") or check["area"] in told for check in report["checks"] if check["level"] != "ok")
        return report

    @staticmethod
    def of(report, level, area=None):
        return [check for check in report["checks"] if check["level"] == level and area in (None, check["area"])]

    def failures(self, area, **options):
        found = self.of(self.doctor(**options), "fail")
        assert found and {check["area"] for check in found} == {area}, found
        return found


def test_before_the_first_start_and_while_the_service_runs(machine):
    report = machine.doctor()
    assert report["ok"] and len([check for check in report["checks"] if "is free" in check["text"]]) == 6
    assert not machine.data.exists()
    service = Service(machine.data)
    service.start(*(part for name, port in machine.ports.items() for part in (f"--{name}", str(port))))
    try:
        # The ports of the configuration are not those of the running service.
        machine.write(**{"api-port": 1})
        report = machine.doctor()
        areas = {check["area"] for check in machine.of(report, "ok")}
        assert {"configuration", "service", "port", "descriptors", "files", "store", "certificates", "disk"} <= areas
        assert len([check for check in report["checks"] if "is this service's" in check["text"]]) == 6
        lines = herald("doctor", "--config", machine.config).stdout.splitlines()
        assert len(lines) == len(report["checks"]) and all(line.split()[0] in ("ok", "warn") for line in lines)
    finally:
        service.close()


def test_a_port_that_is_taken_names_its_holder(machine):
    with socket.create_server(("127.0.0.1", machine.ports["device-port"])):
        (found,) = machine.failures("port")
        assert "device-port" in found["text"] and f"(process {os.getpid()})" in found["text"]


def test_an_address_of_another_machine(machine):
    machine.write(host="192.0.2.1")
    (found,) = machine.failures("port")
    assert found["text"] == "host: 192.0.2.1 is not an address of this machine"


@pytest.fixture
def made(machine):
    herald("init", "--data", machine.data)
    return machine


def test_files_that_others_can_read(made):
    keys = made.data / "trust" / "token.keys"
    keys.chmod(0o644)
    assert f"chmod 600 {keys}" in [found["remedy"] for found in made.of(made.doctor(), "fail", "files")]
    keys.chmod(0o600)
    (made.data / "store").chmod(0o750)
    (found,) = made.failures("files")
    assert found["remedy"] == f"chmod 700 {made.data / 'store'}"


def test_a_clock_before_the_certificates(made, tmp_path):
    clock = MachineClock(tmp_path)
    clock.move(-86_400)
    (found,) = made.failures("clock", prefix=clock.prefix)
    assert "before" in found["text"] and "set the clock" in found["remedy"]


def test_certificates_that_ended_and_lost_keys(made, tmp_path):
    clock = MachineClock(tmp_path)
    clock.move(3 * 365 * 86_400)
    assert "start the service, which renews it" in [found["remedy"] for found in made.failures("certificates", prefix=clock.prefix)]
    (made.data / "trust" / "device-authority.pem").unlink()
    assert "copy the file from a backup" in made.failures("trust")[0]["text"]


def test_names(made):
    made.write(hostname="[localhost, nowhere.invalid]")
    report = made.doctor()
    assert report["ok"]
    (known,), (unknown,) = made.of(report, "ok", "names"), made.of(report, "warn", "names")
    assert "localhost is 127.0.0.1" in known["text"] or "localhost is ::1" in known["text"]
    assert "nowhere.invalid does not resolve" in unknown["text"]
    assert any("nowhere.invalid" in found["text"] for found in made.of(report, "warn", "certificates"))


def test_few_descriptors(made):
    assert "devices connect" in made.of(made.doctor(prefix=("prlimit", "--nofile=1024:1024")), "warn", "descriptors")[0]["text"]
    assert "LimitNOFILE" in made.failures("descriptors", prefix=("prlimit", "--nofile=128:128"))[0]["remedy"]


def test_a_store_of_a_newer_herald(made):
    service = Service(made.data).start()
    service.stop()
    store = sqlite3.connect(made.data / "store" / "herald.db")
    store.execute("PRAGMA user_version = 99")
    # Copies the log into the file, whose header is read.
    store.close()
    (found,) = made.failures("store")
    assert "newer Herald" in found["text"] and "restore a backup" in found["text"] and "remedy" not in found


def test_what_is_no_data_folder(made):
    """A folder of other files, a file, and a data folder that lost its mark or its trust."""
    (made.data / "format").rename(made.data / "former")
    assert "without the file `format`" in made.failures("data")[0]["text"]
    (made.data / "former").rename(made.data / "format")
    (made.data / "trust").rename(made.data / "former")
    assert "restore a backup" in made.failures("data")[0]["text"]
    made.write(data=made.data / "former")
    assert "is not a data folder of Herald's" in made.failures("data")[0]["text"]
    made.write(data=made.config)
    assert "is not a folder" in made.failures("data")[0]["text"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_another_user_is_told_whose_the_folder_is(mode):
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        herald("init", "--data", data)
        data.parent.chmod(0o711)
        data.chmod(mode)
        for command in ("status", "doctor"):
            words = ["setpriv", "--reuid", "65534", "--clear-groups", HERALD, command, "--data", data]
            result = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, cwd="/")
            assert result.returncode == 1 and "`sudo -u root herald …`" in result.stdout, result
            assert "herald serve" not in result.stdout and "none runs" not in result.stdout
