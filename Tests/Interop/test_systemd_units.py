"""The units for systemd: systemd accepts every line of them, and their commands start together."""

import shlex
import subprocess

import pytest

from nats_servers import NATS_SERVER
from pushchat import APP, PUSHCHAT
from service import HERALD, PATIENCE, ROOT

UNITS = sorted((ROOT / "Packaging" / "systemd").glob("*.service"))
RELAY_UNIT = ROOT / "Packaging" / "systemd" / "herald-relay.service"
CHAT_UNIT = ROOT / "Examples" / "PushChat" / "pushchat.service"
NATS_UNIT = ROOT / "Examples" / "Cluster" / "herald-nats.service"
BINARIES = {"/usr/bin/herald": str(HERALD), "/usr/local/bin/PushChat": str(PUSHCHAT), "/usr/local/bin/nats-server": str(NATS_SERVER)}


@pytest.mark.parametrize("unit", [*UNITS, CHAT_UNIT, NATS_UNIT], ids=lambda unit: unit.name)
def test_systemd_accepts_the_unit(unit, tmp_path):
    text = unit.read_text()
    for installed, built in BINARIES.items():
        text = text.replace(installed, built)
    copy = tmp_path / unit.name
    copy.write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", copy]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    # A key that systemd does not know is only a line on standard error.
    assert (result.returncode, result.stderr) == (0, "")


def test_the_commands_of_the_units_start(shared, tmp_path):
    config = {
        "database": f"sqlite://{tmp_path}/var/queue.db", "topic": APP, "certificate": shared.provider_certificate(APP),
        "service": f"localhost:{shared.listeners['api']}", "ca": shared.ca, "relay-port": 0,
        "feedback": f"localhost:{shared.listeners['feedback']}",
    }
    for name in ("etc", "var"):
        (tmp_path / name).mkdir()
    (tmp_path / "etc" / "relay.yaml").write_text("".join(f"{key}: {value}\n" for key, value in config.items()))
    places = {
        **BINARIES, "/etc/herald": f"{tmp_path}/etc", "/var/lib/herald-relay": f"{tmp_path}/var",
        "/var/lib/pushchat": f"{tmp_path}/var", "--port 8090": "--port 0",
    }
    running = []
    try:
        for unit in (RELAY_UNIT, CHAT_UNIT):
            (command,) = [line.removeprefix("ExecStart=") for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
            for written, here in places.items():
                command = command.replace(written, here)
            running.append(
                subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            )
            lines = []
            # If a word of the command is wrong, it ends without this line.
            while "ready\n" not in lines:
                lines.append(running[-1].stdout.readline())
                assert lines[-1], "".join(lines)
        for process in running:
            process.terminate()
            assert process.wait(timeout=PATIENCE) == 0
    finally:
        for process in running:
            process.kill()
            process.wait(timeout=PATIENCE)
            process.stdout.close()
