"""A disk that fails: nothing is acknowledged that is not stored.

Full: providers get 503, and when there is room again it works. A sync that failed: the process ends, since only a restart
finds out what is on the disk.
"""

import contextlib
import os
import urllib.error
import urllib.request

import pytest

from binary import BAD_TOKEN, Binary, framed
from disk_faults import DiskFault
from parties import assert_refused, new_id
from private_mounts import in_private_mounts, mount
from provider import Disconnected, Provider, away_device, listening_device
from service import PATIENCE, Service, eventually, herald

LARGE = {"aps": {"alert": "x" * 3900}}


def fill(path):
    """Takes all the room that is left."""
    with open(path, "ab", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while filler.write(b"x" * size) == size:
                    pass


class Accepted:
    """The notifications answered with 200, the newest of each device last."""

    def __init__(self, provider, may_stop=False):
        self.provider = provider
        self.may_stop = may_stop
        self.newest = {}
        #: Everything that was sent, in order, whatever came of it.
        self.sent = {}

    def push(self, device, **options):
        id = new_id()
        self.sent.setdefault(device.id, []).append(id)
        answer = self.provider.push(device.token, LARGE, id=id, **options)
        if answer.status == 200:
            self.newest[device.id] = id
        else:
            assert_refused(answer, 503, self.refusal(answer), id)
        return answer

    def refusal(self, answer):
        """Why a disk that fails refuses: a service that it ends refuses what comes meanwhile as one that stops."""
        return "Shutdown" if self.may_stop and answer.reason == "Shutdown" else "ServiceUnavailable"


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


def health(service):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/health", timeout=PATIENCE) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@in_private_mounts
def test_a_full_disk_is_survived(disk):
    mount(disk, "tmpfs", size="96m")
    service = Service(disk / "data").start()
    try:
        devices = [away_device(service, name=f"device {n}") for n in range(5)]
        with Provider(service, service.provider_certificate()) as provider:
            accepted = Accepted(provider)
            for device in devices:
                assert accepted.push(device).status == 200
            fill(disk / "filler")
            refused = 0
            for n in range(4000):
                refused += accepted.push(devices[n % 5]).status == 503
                if refused >= 50:
                    break
            assert refused >= 50, "the disk is full, and nothing was refused"
            eventually(lambda: health(service) == 503, what="the bad health")
            assert service.process.poll() is None

            os.truncate(disk / "filler", 0)
            eventually(lambda: accepted.push(devices[0]).status == 200, what="the first success")
            eventually(lambda: health(service) == 200, what="the good health")
            for device in devices[:3]:
                assert accepted.push(device).status == 200
        for device in devices:
            with device.start():
                assert device.next().id == accepted.newest[device.id]
        assert service.stop() == 0
    finally:
        service.close()


@in_private_mounts
def test_accepted_notifications_survive_a_kill_on_a_full_disk(disk):
    mount(disk, "tmpfs", size="96m")
    service = Service(disk / "data").start()
    try:
        devices = [away_device(service, name=f"device {n}") for n in range(5)]
        with Provider(service, service.provider_certificate()) as provider:
            accepted = Accepted(provider)
            fill_at = 10
            for n in range(4000):
                if n == fill_at:
                    fill(disk / "filler")
                if accepted.push(devices[n % 5]).status == 503:
                    break
            else:
                raise AssertionError("the disk is full, and nothing was refused")
        service.kill()
        os.truncate(disk / "filler", 0)
        service.start()
        for device in devices:
            with device.start():
                assert device.next().id == accepted.newest[device.id]
    finally:
        service.close()


@in_private_mounts
def test_the_binary_interface_reports_failed_writes(disk):
    mount(disk, "tmpfs", size="96m")
    service = Service(disk / "data").start()
    try:
        device, certificate = away_device(service), service.provider_certificate()
        payload = b'{"aps":{"alert":"%s"},"n":%d}'
        vouched, refused = 0, 0
        for batch in range(200):
            if batch == 1:
                fill(disk / "filler")
            numbers = range(batch * 100, batch * 100 + 100)
            with Binary(service, certificate) as connection:
                connection.send(b"".join(framed(n, device.token, payload % (b"x" * 1900, n)) for n in numbers))
                connection.send(framed(numbers[-1], BAD_TOKEN))
                status, identifier = connection.answer()
            assert status in (1, 8)
            # An answer speaks for its own connection only.
            last = identifier if status == 8 else identifier - 1
            if last in numbers:
                vouched = last
            refused += status == 1
            if refused == 3:
                break
        assert refused == 3, "the disk is full, and nothing was refused"
        service.kill()
        os.truncate(disk / "filler", 0)
        service.start()
        with device.start():
            assert device.next().json["n"] >= vouched
    finally:
        service.close()


@in_private_mounts
def test_a_connected_device_is_served_on_a_full_disk(disk):
    """An acknowledged notification needs no disk, and only such a notification is answered with 200."""
    mount(disk, "tmpfs", size="96m")
    service = Service(disk / "data").start()
    try:
        device, away = listening_device(service), away_device(service)
        with Provider(service, service.provider_certificate()) as provider, device:
            accepted = Accepted(provider)
            fill(disk / "filler")
            for _ in range(4000):
                if accepted.push(away).status == 503:
                    break
            sent = [new_id() for _ in range(20)]
            answers = {id: provider.push(device.token, id=id) for id in sent}
            os.truncate(disk / "filler", 0)
            eventually(lambda: provider.push(device.token).status == 200)
            device.next()
            successes = {id for id, answer in answers.items() if answer.status == 200}
            assert {answer.status for answer in answers.values()} <= {200, 503}
            eventually(
                lambda: successes <= {message.id for message in device.messages}, what="the delivery of what was accepted"
            )
    finally:
        service.close()


@in_private_mounts
def test_a_start_on_a_full_disk_is_reported(disk):
    mount(disk, "tmpfs", size="8m")
    fill(disk / "filler")
    result = herald(
        "serve", "--data", disk / "data", "--api-port", 0, "--binary-port", 0, "--feedback-port", 0,
        "--device-port", 0, "--activation-port", 0, "--console-port", 0, check=False
    )
    assert result.returncode == 1
    assert str(disk) in result.stderr and len(result.stderr.strip().splitlines()) == 1


def failing(service, calls, error, when):
    """Lets system calls of the running service fail from a moment on: the `when`th of each thread, as strace counts."""
    return contextlib.closing(DiskFault(service, calls, f"error={error}:when={when}"))


@pytest.mark.parametrize("when", ["1", "2", "5"])
def test_a_failed_sync_ends_the_process_with_one_line_and_loses_nothing(fresh, when):
    service = fresh().start()
    devices = [away_device(service, name=f"device {n}") for n in range(3)]
    with Provider(service, service.provider_certificate()) as provider:
        accepted = Accepted(provider, may_stop=True)
        for device in devices:
            assert accepted.push(device).status == 200
        with failing(service, "fdatasync,fsync", "EIO", when):
            with contextlib.suppress(Disconnected, OSError):
                for n in range(200):
                    accepted.push(devices[n % 3])
            assert service.wait() == 1
    errors = [line for line in service.lines if "failed to sync" in line]
    assert errors and "check the disk, then start Herald again" in errors[-1]
    assert not any("Fatal error" in line or "backtrace" in line.lower() for line in service.lines)
    service.lines.clear()
    service.start()
    for device in devices:
        with device.start():
            # A refused or unanswered notification may be stored too: then it is the newest.
            sent = accepted.sent[device.id]
            assert sent.index(device.next().id) >= sent.index(accepted.newest[device.id])
    assert service.stop() == 0


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_failed_writes_are_refused_until_writes_succeed(fresh, error):
    service = fresh().start()
    devices = [away_device(service, name=f"device {n}") for n in range(3)]
    with Provider(service, service.provider_certificate()) as provider:
        accepted = Accepted(provider)
        for device in devices:
            assert accepted.push(device).status == 200
        with failing(service, "pwrite64", error, "3+"):
            refused = sum(accepted.push(devices[n % 3]).status == 503 for n in range(60))
            assert refused >= 50, "the disk fails, and nothing was refused"
            eventually(lambda: health(service) == 503, what="the bad health")
        eventually(lambda: accepted.push(devices[0]).status == 200, what="the first success")
        eventually(lambda: health(service) == 200, what="the good health")
    for device in devices:
        with device.start():
            assert device.next().id == accepted.newest[device.id]
    assert service.stop() == 0
