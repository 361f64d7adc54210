"""Backups with data at stake: made under load, restored elsewhere, damaged, interrupted."""

import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import tempfile
import threading

import pytest

from commands import failed_start, one_line
from mqtt_device import Identity, Refused
from mqtt_packets import Reason
from parties import assert_accepted, new_id
from private_mounts import in_private_mounts, mount
from provider import Disconnected, Provider, away_device
from service import HERALD, PATIENCE, Service, eventually, herald


def backup(service, out):
    return json.loads(herald("backup", "--data", service.data, out, "--json").stdout)


def restored(out, data):
    herald("restore", out, "--data", data)
    return Service(data)


def modes(folder):
    """The paths below a folder that others can open."""
    return [path for path in folder.rglob("*") if path.stat().st_mode & 0o077]


class Load:
    """Notifications for devices that are away, one after the other, until `stop`."""

    def __init__(self, service, devices):
        self.service, self.devices = service, devices
        #: The identifiers that were answered with 200, of each device, in order.
        self.accepted = {device.id: [] for device in devices}
        #: Everything that was sent.
        self.sent = {device.id: [] for device in devices}
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._push, self._change_trust)]
        self.certificate = service.provider_certificate()
        for thread in self._threads:
            thread.start()

    def _push(self):
        with Provider(self.service, self.certificate) as provider:
            while not self._stopping.is_set():
                for device in self.devices:
                    id = new_id()
                    self.sent[device.id].append(id)
                    assert provider.push(device.token, {"aps": {"alert": "x" * 2000}}, id=id).status == 200
                    self.accepted[device.id].append(id)

    def _change_trust(self):
        """Commands that write the ledger and the files beside it."""
        while not self._stopping.is_set():
            herald("provider", "revoke", "--data", self.service.data, self.service.provider_key()[1])
            self.service.device()

    def newest(self):
        return {id: accepted[-1] for id, accepted in self.accepted.items()}

    def stop(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=PATIENCE)


def is_refused(service, certificate, token):
    try:
        with Provider(service, certificate) as provider:
            return provider.push(token).status == 403
    except (Disconnected, OSError):
        return True


@pytest.mark.slow
def test_a_backup_under_load_has_all_that_was_accepted_and_revoked_before_it(fresh, tmp_path):
    service = fresh().start()
    devices = [away_device(service, name=f"device {n}") for n in range(4)]
    revoked = service.provider_certificate()
    (entry,) = json.loads(herald("provider", "list", "--data", service.data, "--json").stdout)
    herald("provider", "revoke", "--data", service.data, entry["id"])
    load = Load(service, devices)
    promises = []
    try:
        for n in range(2):
            count = {device.id: len(load.accepted[device.id]) for device in devices}
            eventually(lambda: all(len(load.accepted[id]) > count[id] + 5 for id in count), what="the load")
            newest = load.newest()
            report = backup(service, tmp_path / f"backup{n}")
            assert report["waiting"] == len(devices) and modes(tmp_path / f"backup{n}") == []
            promises.append(newest)
    finally:
        load.stop()
    service.kill()
    for n, newest in enumerate(promises):
        copy = restored(tmp_path / f"backup{n}", tmp_path / f"data-{n}")
        copy.start()
        try:
            assert not any("not closed cleanly" in line for line in copy.lines), "a restored store needs no check"
            assert is_refused(copy, revoked, devices[0].token)
            for device in devices:
                sent = load.sent[device.id]
                device.service = copy
                with device.start():
                    assert sent.index(device.next().id) >= sent.index(newest[device.id])
                assert copy.journal(newest[device.id]), "the journal is in the backup"
            with Provider(copy, load.certificate) as provider:
                assert_accepted(provider.push(devices[0].token))
            assert copy.stop() == 0
        finally:
            copy.close()


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """The data folder of a service with a notification that waits, stopped, and beside it a backup."""
    service = Service(tmp_path_factory.mktemp("original") / "data").start()
    try:
        with Provider(service, service.provider_certificate()) as provider:
            assert_accepted(provider.push(away_device(service).token))
        service.stop()
    finally:
        service.close()
    backup(service, service.data.parent / "backup")
    return service.data.parent


@pytest.fixture
def made(fresh, tmp_path, original):
    """A copy of that service, and of the backup."""
    for name in ("data", "backup"):
        shutil.copytree(original / name, tmp_path / name)
    return fresh(data=tmp_path / "data")


@pytest.mark.slow
def test_a_change_of_any_byte_is_refused(made, tmp_path):
    chance = random.Random(16)
    files = sorted(path for path in (tmp_path / "backup").rglob("*") if path.is_file())
    assert {"manifest.json", "herald.db", "ledger.db", "token.keys", "ca.pem", "format"} <= {path.name for path in files}
    for path in files:
        whole = path.read_bytes()
        if not whole:
            continue
        ends = {0, len(whole) - 1} if path.suffix in (".db", ".json") else set()
        for place in {chance.randrange(len(whole)), *ends}:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1:])
            result = herald("restore", tmp_path / "backup", "--data", tmp_path / "restored", check=False)
            assert path.name in one_line(result) or "manifest.json" in result.stderr, result.stderr
            assert not (tmp_path / "restored").exists()
        path.write_bytes(whole)
    keys = tmp_path / "backup" / "trust" / "token.keys"
    whole = keys.read_bytes()
    for change in (lambda: keys.write_bytes(whole[:-1]), keys.unlink):
        change()
        assert "token.keys" in one_line(herald("restore", tmp_path / "backup", "--data", tmp_path / "restored", check=False))
    keys.write_bytes(whole)
    keys.chmod(0o600)
    restored(tmp_path / "backup", tmp_path / "restored")
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "restored").rglob("*.crl")] == [0o644] * 2
    assert {path.name for path in modes(tmp_path / "restored")} == {"ca.pem", "format", "device.crl", "provider.crl"}


def killed_at(number, *command):
    """Runs a command that is killed when a thread of it asks for its so many-th sync or rename; its exit status."""
    inject = f"inject=fsync,rename:signal=KILL:when={number}"
    words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,rename", "-e", inject, HERALD, *command]
    return subprocess.run(words, capture_output=True, timeout=PATIENCE).returncode


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "numbers"), [("backup", (1, 5, 10, 15, 18, 40)), ("restore", (1, 14, 17, 18, 19, 20, 21, 40))]
)
def test_a_killed_command_leaves_nothing_that_passes_for_whole(made, tmp_path, command, numbers):
    done = 0
    for number in numbers:
        target = tmp_path / f"target{number}"
        arguments = {
            "backup": ["backup", "--data", made.data, target], "restore": ["restore", tmp_path / "backup", "--data", target],
        }[command]
        status = killed_at(number, *map(str, arguments))
        is_whole = (target / ("manifest.json" if command == "backup" else "format")).exists()
        done += status == 0
        assert is_whole or status != 0
        if not is_whole and command == "restore" and target.exists():
            assert "restore" in one_line(herald("device", "list", "--data", target, check=False))
        if not is_whole:
            herald(*arguments)
        if command == "backup":
            herald("restore", target, "--data", tmp_path / f"restored{number}")
        else:
            herald("device", "list", "--data", target)
            assert not (target / ".restore").exists() or not list((target / ".restore").iterdir())
        assert not list(tmp_path.glob("*.unfinished"))
    assert done, "no attempt came to its end: add a larger number"


def refusal(*arguments):
    return one_line(herald(*arguments, check=False))


def test_nothing_is_overwritten(made, tmp_path):
    out = tmp_path / "backup"
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert "already exists" in refusal("backup", "--data", made.data, out)
    assert "already exists" in refusal("backup", "--data", made.data, out / "format")
    (tmp_path / "empty").mkdir()
    assert "already exists" in refusal("backup", "--data", made.data, tmp_path / "empty")
    assert "path is empty" in refusal("backup", "--data", made.data, "")
    assert "there is no folder" in refusal("backup", "--data", made.data, tmp_path / "no" / "where")
    (tmp_path / "link").symlink_to(made.data / "store")
    for inside in (made.data / "new", tmp_path / "link" / "new"):
        assert "is in the data folder" in refusal("backup", "--data", made.data, inside)
    assert "there is no data folder" in refusal("backup", "--data", tmp_path / "nowhere", tmp_path / "new")
    assert "is not empty" in refusal("restore", out, "--data", made.data)
    made.start()
    assert f"process {made.pid} is working on" in refusal("restore", out, "--data", made.data)
    assert "is not a backup" in refusal("restore", made.data, "--data", tmp_path / "new")
    assert "unpack an archive first" in refusal("restore", out / "format", "--data", tmp_path / "new")
    assert "there is no folder" in refusal("restore", tmp_path / "nothing", "--data", tmp_path / "new")
    assert f"there is no folder {tmp_path}/no" in refusal("restore", out, "--data", tmp_path / "no" / "new")
    assert "path is empty" in refusal("restore", out, "--data", "")
    assert "is the backup itself" in refusal("restore", out, "--data", tmp_path / "link" / ".." / ".." / "backup")
    for inside in (out / "new", out / "trust"):
        assert "is in the backup" in refusal("restore", out, "--data", inside)
    assert f"the backup {out} is in" in refusal("restore", out, "--data", tmp_path)
    assert not (tmp_path / "new").exists()
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize("away", ["deleted", "moved"])
def test_a_service_that_runs_on_the_former_folder_is_stopped_first(made, tmp_path, away):
    made.start()
    shutil.rmtree(made.data) if away == "deleted" else made.data.rename(tmp_path / "moved")
    for _ in "without a folder", "with an empty one":
        assert f"process {made.pid} still runs" in refusal("restore", tmp_path / "backup", "--data", made.data)
        assert not made.data.exists() or not list(made.data.iterdir())
        made.data.mkdir(mode=0o700, exist_ok=True)
    made.stop()
    herald("restore", tmp_path / "backup", "--data", made.data)
    made.start()


def test_a_lost_file_is_named_and_comes_back_from_a_backup(made, tmp_path):
    for name in ("token.keys", "ledger.db"):
        lost = made.data / "trust" / name
        lost.unlink()
        said = refusal("backup", "--data", made.data, tmp_path / "out")
        assert f"{lost} is missing: stop the service, and copy the file from a backup" in said
        assert not lost.exists() and not list(tmp_path.glob("out*"))
        shutil.copy(tmp_path / "backup" / "trust" / name, lost)
    key = made.data / "trust" / "announcement.key"
    whole = key.read_bytes()
    key.write_text("garbage")
    assert "announcement.key is not a private key" in refusal("backup", "--data", made.data, tmp_path / "out")
    key.write_bytes(whole)
    # Of these a start makes new ones, and says so.
    for name in ("trust/server.pem", "ca.pem"):
        (made.data / name).write_text("garbage")
        assert f"{made.data / name}" in (said := failed_start(made.data).stderr)
        assert "remove it, and restart the service, which writes it again" in said and "backup" not in said
        (made.data / name).unlink()
    (made.data / "trust" / "root.pem").write_text("garbage")
    assert "copy the file from a backup" in failed_start(made.data).stderr
    shutil.copy(tmp_path / "backup" / "trust" / "root.pem", made.data / "trust" / "root.pem")
    made.start()


def test_a_backup_of_a_newer_herald_is_told_from_a_damaged_one(made, tmp_path):
    manifest = tmp_path / "backup" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format" : 1', '"format" : 3'))
    assert "newer Herald" in refusal("restore", tmp_path / "backup", "--data", tmp_path / "new")


def test_an_empty_folder_becomes_the_data_folder_and_tells_what_is_lost(made, tmp_path):
    (tmp_path / "empty").mkdir(mode=0o700)
    said = herald("restore", tmp_path / "backup", "--data", tmp_path / "empty").stdout
    assert "1 waiting" in said
    for word in ("notifications are lost", "revoke those", "open again", "token rotate"):
        assert word in said


@pytest.fixture
def open_folder():
    """A folder that every user can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pathlib.Path(folder).chmod(0o755)
        yield pathlib.Path(folder)


def as_root(*command):
    """Runs a command as root; without it, as the superuser of a user namespace with the user's subordinate users."""
    prefix = [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--map-auto"]
    return subprocess.run([*prefix, *map(str, command)], capture_output=True, text=True, timeout=PATIENCE)


def test_root_restores_with_the_rights_of_the_folders_owner(made, tmp_path, open_folder):
    data = open_folder / "data"
    data.mkdir(mode=0o700)
    changed = as_root("chown", "33:12", data)
    assert changed.returncode == 0, f"needs root, or subordinate users (/etc/subuid, newuidmap): {changed.stderr}"
    # Root itself could write here.
    assert as_root("chmod", "500", data).returncode == 0
    assert "Permission denied" in one_line(as_root(HERALD, "restore", tmp_path / "backup", "--data", data))
    assert as_root("chmod", "700", data).returncode == 0
    said = as_root(HERALD, "restore", tmp_path / "backup", "--data", data)
    assert said.returncode == 0 and "owner  " not in said.stdout, said.stderr
    listed = as_root("find", data, "-printf", "%U:%G %P\\n").stdout.splitlines()
    assert "33:12 store/herald.db" in listed and "33:12 trust/ledger.db" in listed
    assert {line.split()[0] for line in listed} == {"33:12"}


def as_stranger(folder, *command):
    """Runs a command of Herald's as another user than the present one."""
    words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", folder / "herald", *command]
    return as_root(*words)


def test_another_user_is_told_whose_files_these_are(made, tmp_path, open_folder):
    # The paths of tests are closed to other users.
    shutil.copy(HERALD, open_folder / "herald")
    for name, path in (("data", made.data), ("backup", tmp_path / "backup")):
        shutil.copytree(path, open_folder / name)
        (open_folder / name).chmod(0o755)
    data, out = open_folder / "data", open_folder / "backup"
    mine = open_folder / "mine"
    mine.mkdir(mode=0o777)
    mine.chmod(0o777)
    for command in (
        ["backup", "--data", data, mine / "out"],
        ["restore", out, "--data", mine / "new"],
        ["restore", out, "--data", open_folder / "new"],
    ):
        said = one_line(as_stranger(open_folder, *command))
        assert re.search(r"belongs to user \S+, and this command runs as user \S+: run it as", said), said
        assert str(open_folder) in said and "Permission denied" not in said
    assert not list(mine.iterdir()) and not (open_folder / "new").exists()


def test_an_unfinished_folder_of_somebody_else_stays(made, tmp_path):
    draft = tmp_path / "out.unfinished"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    command = ("backup", "--data", made.data, tmp_path / "out")
    draft.symlink_to(elsewhere)
    assert "is not a folder" in refusal(*command)
    draft.unlink()
    draft.mkdir(mode=0o755)
    assert "mode 0755" in refusal(*command)
    draft.chmod(0o700)
    for name in ("notes", "store/notes", "trust/folder/notes"):
        path = draft / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
        assert f"holds {name.removesuffix('/notes') if name.count('/') == 2 else name}" in refusal(*command)
        assert path.read_text() == "mine"
        path.unlink()
    (draft / "trust" / "folder").rmdir()
    for name in ("manifest.json.7.new", "store/herald.db-journal", "trust/token.keys"):
        (draft / name).write_text("left")
    herald(*command)
    assert not draft.exists()


def test_a_backup_whose_name_may_be_lost_stays(made, tmp_path):
    """The last sync, of the folder in which the backup gets its name, fails."""
    folder = tmp_path / "backups"
    folder.mkdir()
    words = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", folder, "-e", "trace=fsync", "-e", "inject=fsync:error=EIO"]
    result = subprocess.run(
        [*words, HERALD, "backup", "--data", made.data, folder / "out"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert "is whole, but a loss of power" in one_line(result)
    restored(folder / "out", tmp_path / "restored")


def test_damaged_rows_are_counted(made, tmp_path):
    assert backup(made, tmp_path / "whole")["damaged"] == 0
    store = sqlite3.connect(made.data / "store" / "herald.db")
    # One header of one notification.
    (headers,) = store.execute("SELECT headers FROM segment").fetchone()
    store.execute("UPDATE segment SET headers = ?", (bytes([headers[0] ^ 1]) + headers[1:],))
    store.commit()
    store.close()
    result = herald("backup", "--data", made.data, tmp_path / "out", "--json")
    assert json.loads(result.stdout)["damaged"] == 1 and "1 damaged" in result.stderr
    result = herald("restore", tmp_path / "out", "--data", tmp_path / "restored")
    assert "1 damaged" in result.stderr


@in_private_mounts
def test_a_full_disk_leaves_nothing_behind(made, tmp_path):
    for command, target in (("backup", "out"), ("restore", "data")):
        disk = tmp_path / f"disk-{command}"
        disk.mkdir()
        mount(disk, "tmpfs", size="64k")
        first = ["--data", made.data] if command == "backup" else [tmp_path / "backup", "--data"]
        said = refusal(command, *first, disk / target)
        assert "full" in said or "No space left" in said
        assert list(disk.iterdir()) == []


@pytest.mark.slow
def test_a_backup_of_a_killed_service_is_whole(fresh, tmp_path):
    """A killed service leaves a log beside the store, and a command that is killed perhaps a journal beside the ledger."""
    service = fresh().start()
    device = away_device(service)
    certificate = service.provider_certificate()
    with Provider(service, certificate) as provider:
        answer = provider.push(device.token)
        assert_accepted(answer)
    service.kill()
    backup(service, tmp_path / "backup")
    copy = restored(tmp_path / "backup", tmp_path / "copy").start()
    try:
        device.service = copy
        with device.start():
            assert device.next().id == answer.id.lower()
    finally:
        copy.close()
    service.start()


def test_a_restore_names_the_tokens_that_are_valid(fresh, tmp_path):
    service = fresh().start()
    herald("console", "token", "--data", service.data, "--name", "stolen", "--role", "admin")
    backup(service, tmp_path / "backup")
    herald("console", "revoke", "--data", service.data, "stolen")
    service.stop()
    words = herald("restore", tmp_path / "backup", "--data", tmp_path / "again").stdout
    assert "herald console revoke NAME" in words and words.rstrip().endswith("stolen")
    answer = json.loads(herald("restore", tmp_path / "backup", "--data", tmp_path / "other", "--json").stdout)
    assert answer["tokens"] == ["stolen"]


def test_what_was_issued_after_the_backup_can_be_revoked_by_its_file(fresh, tmp_path):
    service = fresh().start()
    backup(service, tmp_path / "backup")
    certificate, phone = service.provider_certificate(), Identity(service)
    assert service.stop() == 0
    copy = restored(tmp_path / "backup", tmp_path / "restored").start()
    try:
        phone.service = copy
        link = phone.connect()
        token = link.register()
        assert not is_refused(copy, certificate, token)
        listed = lambda kind: json.loads(herald(kind, "list", "--data", copy.data, "--json").stdout)
        assert not listed("provider") and not listed("device")

        for kind, path in (("provider", certificate), ("device", phone.path)):
            assert "revoked" in herald(kind, "revoke", "--data", copy.data, "--certificate", path).stdout
            again = herald(kind, "revoke", "--data", copy.data, "--certificate", path, check=False)
            assert again.returncode != 0 and "was revoked at" in one_line(again)
        assert all(entry["revoked"] for kind in ("provider", "device") for entry in listed(kind))
        link.refused(Reason.NOT_AUTHORIZED)
        with pytest.raises(Refused) as refusal:
            phone.connect()
        assert refusal.value.reason == Reason.NOT_AUTHORIZED
        assert is_refused(copy, certificate, token)

        # Each kind has its own authority; a certificate of another one would be refused anyway.
        for kind, path in (("provider", phone.path), ("device", certificate)):
            foreign = herald(kind, "revoke", "--data", copy.data, "--certificate", path, check=False)
            assert foreign.returncode != 0 and "has not signed it" in one_line(foreign)
        neither = herald("provider", "revoke", "--data", copy.data, check=False)
        assert neither.returncode != 0 and "--certificate" in neither.stderr
    finally:
        phone.close()
        copy.close()
