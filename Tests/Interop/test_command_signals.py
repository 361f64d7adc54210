"""SIGHUP before anything is ready, and files that change below a running service."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from commands import PORTS, one_line
from parties import assert_accepted, assert_refused, new_id
from private_mounts import in_private_mounts, mount
from provider import Disconnected, Provider, away_device
from service import HERALD, PATIENCE, Service, eventually, herald
from test_command_disk import health

#: SIGHUP at each of these calls: none comes before the first rt_sigaction. Who runs the tests may ignore the signal.
HANGUPS = (
    "env", "--default-signal=HUP", "strace", "-f", "-qq", "-o", "/dev/null",
    "-e", "trace=rt_sigaction,clone3", "-e", "inject=rt_sigaction,clone3:signal=HUP",
)


@pytest.fixture
def service(fresh):
    return fresh().start()


def test_hangups_from_the_first_instruction_do_not_end_the_service(tmp_path):
    service = Service(tmp_path / "data", prefix=HANGUPS)
    try:
        service.start()
        assert health(service) == 200
        assert service.stop() == 0
    finally:
        service.close()


@pytest.mark.parametrize("command, code", [
    (("relay", "run"), 64), (("agent", "run"), -signal.SIGHUP), (("journal",), -signal.SIGHUP),
])
def test_only_daemons_outlive_a_hangup(tmp_path, command, code):
    """Wrong usage ends the relay, and the signal those that belong to a terminal."""
    process = subprocess.run(
        [*HANGUPS, HERALD, *command, "--no-such-option"], cwd=tmp_path, capture_output=True, timeout=2 * PATIENCE
    )
    assert process.returncode == code, process.stderr


def test_the_first_process_of_a_container_stops_during_its_start(tmp_path):
    """The kernel ignores signals that such a process does not trap."""
    data = tmp_path / "data"
    herald("init", "--data", data)
    with open(data / "trust" / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child", HERALD, "serve", "--data", data, *PORTS],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        try:
            eventually(lambda: (data / "run" / "serve.json").exists(), what="the record of the start")
            (leader,) = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(int(leader), signal.SIGTERM)
            fcntl.flock(lock, fcntl.LOCK_UN)
            said, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            process.wait(timeout=PATIENCE)
    assert process.returncode == 0 and "ready" not in said.splitlines(), said


@in_private_mounts
def test_without_proc_no_command_seems_to_succeed():
    mount("/proc", "tmpfs")
    assert "/proc is not mounted" in one_line(herald("status", check=False))


def test_a_deleted_data_folder_is_noticed_and_can_be_restored(service):
    device, certificate = away_device(service), service.provider_certificate()
    backup = service.data.with_name("backup")
    with Provider(service, certificate) as provider:
        accepted = new_id()
        assert_accepted(provider.push(device.token, id=accepted), accepted)
        # Stopped, so that nothing writes meanwhile.
        os.kill(service.pid, signal.SIGSTOP)
        shutil.copytree(service.data, backup, ignore=shutil.ignore_patterns("control.sock"))
        shutil.rmtree(service.data)
        os.kill(service.pid, signal.SIGCONT)
        eventually(lambda: health(service) == 503, what="the bad health")
        late = new_id()
        assert_refused(provider.push(device.token, id=late), 503, "ServiceUnavailable", late)
        eventually(lambda: [line for line in service.lines if "the store is gone" in line], what="the log")
        (line,) = [line for line in service.lines if "the store is gone" in line]
        assert "if the folder was moved, move it back; otherwise stop Herald, restore a backup" in line
        (line,) = eventually(lambda: [line for line in service.lines if "trust not reloaded" in line], what="one line")
        assert "trust is missing" in line
    assert service.stop() == 0
    shutil.copytree(backup, service.data)
    service.start()
    with device.start():
        assert device.next().id == accepted


def test_a_moved_data_folder_can_be_moved_back(service):
    device, certificate = away_device(service), service.provider_certificate()
    elsewhere = service.data.with_name("elsewhere")
    with Provider(service, certificate) as provider:
        os.rename(service.data, elsewhere)
        eventually(lambda: health(service) == 503, what="the bad health")
        late = new_id()
        assert_refused(provider.push(device.token, id=late), 503, "ServiceUnavailable", late)
        os.rename(elsewhere, service.data)
        eventually(lambda: health(service) == 200, what="the good health")
        accepted = new_id()
        assert_accepted(provider.push(device.token, id=accepted), accepted)
    assert service.stop() == 0
    service.start()
    with device.start():
        assert device.next().id == accepted


def test_an_index_of_the_log_that_is_cut_short_ends_the_service_with_a_line(service):
    device, certificate = away_device(service), service.provider_certificate()
    with Provider(service, certificate) as provider:
        accepted = new_id()
        assert_accepted(provider.push(device.token, id=accepted), accepted)
        os.truncate(service.data / "store" / "herald.db-shm", 0)
        doubtful = new_id()
        # The service may notice before the request does.
        with contextlib.suppress(Disconnected):
            provider.send(device.token, id=doubtful)
        assert service.wait() == 1
    (line,) = [line for line in service.lines if line.startswith("herald: ")]
    assert "a database file was cut short" in line
    service.start()
    with device.start():
        assert device.next().id in (accepted, doubtful)
