"""The units for systemd: systemd accepts every line of them, and their commands start together."""

import shlex
import subprocess

import pytest

from nats_servers import NATS_SERVER
from pushchat import APP, PUSHCHAT
from service import HERALD, PATIENCE, ROOT

BACKUP_UNITS = sorted((ROOT / "Packaging" / "systemd").glob("herald-backup.*"))
UNITS = sorted({*(ROOT / "Packaging" / "systemd").glob("*.service")} - {*BACKUP_UNITS})
DROP_INS = sorted((ROOT / "Packaging" / "examples" / "herald-agent" / "herald-agent.service.d").glob("*.conf"))
RELAY_UNIT = ROOT / "Packaging" / "systemd" / "herald-relay.service"
CHAT_UNIT = ROOT / "Examples" / "PushChat" / "pushchat.service"
NATS_UNIT = ROOT / "Examples" / "Cluster" / "herald-nats.service"
BINARIES = {"/usr/bin/herald": str(HERALD), "/usr/local/bin/PushChat": str(PUSHCHAT), "/usr/local/bin/nats-server": str(NATS_SERVER)}


@pytest.mark.parametrize("unit", [*UNITS, *BACKUP_UNITS, CHAT_UNIT, NATS_UNIT, *DROP_INS], ids=lambda unit: unit.name)
def test_systemd_accepts_the_unit(unit, tmp_path):
    if unit.suffix == ".conf":
        (tmp_path / unit.parent.name).mkdir()
        (tmp_path / unit.parent.name / unit.name).write_text(unit.read_text())
        (unit,) = [each for each in UNITS if each.stem == "herald-agent"]
    text = unit.read_text()
    for installed, built in BINARIES.items():
        text = text.replace(installed, built)
    copy = tmp_path / unit.name
    copy.write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", copy]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    # A key that systemd does not know is only a line on standard error.
    assert (result.returncode, result.stderr) == (0, "")


def settings_that_nothing_mends(folder):
    """For each unit: the configuration files of services that no restart can mend, with a word of what is wrong."""
    other = folder / "other"
    other.mkdir(mode=0o700)
    (other / "file").write_text("of another program")
    absent, garbage, identity = (folder / f"{name}.pem" for name in ("absent", "garbage", "identity"))
    garbage.write_text("garbage")
    identity.write_text("garbage")
    identity.chmod(0o600)
    queue = f"database: sqlite://{folder}/queue.db\n"
    app = "topic: com.example.app\nservice: localhost:1\n"
    return {
        "herald.service": [
            ("prot: 1\n", "prot"), ("port: [1\n", "yaml"), ("log-level: loud\n", "log-level"),
            (f"data: {other}\n", str(other)), (f"data: {garbage}\n", "not a folder"),
        ],
        "herald-relay.service": [
            (queue, "app"), (queue + "aps: 1\n", "aps"), (f"database: oracle://x\n{app}certificate: {garbage}\n", "database"),
            (f"database: sqlite://{folder}/no/queue.db\n{app}certificate: {garbage}\n", ""),
            (queue + app + f"certificate: {absent}\n", str(absent)), (queue + app + f"certificate: {garbage}\n", str(garbage)),
        ],
        "herald-agent.service": [
            (f"folder: {folder}/none\n", "activate"), ("language: [fr]\n", "--identity"), ("foldr: x\n", "foldr"),
            (f"identity: {absent}\nservice: localhost:1\n", str(absent)),
            (f"identity: {identity}\nservice: localhost:1\n", "is not PEM"),
        ],
    }


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_does_not_repeat_a_start_that_no_restart_can_mend(unit, tmp_path):
    lines = unit.read_text().splitlines()
    (final,) = [line.removeprefix("RestartPreventExitStatus=") for line in lines if line.startswith("RestartPreventExitStatus=")]
    (command,) = [line.removeprefix("ExecStart=") for line in lines if line.startswith("ExecStart=")]
    command, _, _ = command.replace("/usr/bin/herald", str(HERALD)).partition(" --config ")
    for text, words in settings_that_nothing_mends(tmp_path)[unit.name]:
        config = tmp_path / "config.yaml"
        config.write_text(text)
        result = subprocess.run(
            [*shlex.split(command), "--config", config], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE,
        )
        assert str(result.returncode) in final.split(), (text, result)
        assert words in result.stderr, (text, result)


def test_systemd_repeats_a_start_that_may_succeed_later(shared, tmp_path):
    (unit,) = [unit for unit in UNITS if unit.name == "herald.service"]
    (final,) = [line.partition("=")[2] for line in unit.read_text().splitlines() if line.startswith("RestartPreventExitStatus=")]
    for options in (["--data", shared.data], ["--data", tmp_path / "new", "--api-port", str(shared.listeners["api"])]):
        result = subprocess.run([HERALD, "serve", *options], capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode == 1 and str(result.returncode) not in final.split(), result


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
