"""The log in systemd's journal, with a socket of the test in its place."""

import os
import signal
import socket

from commands import failed_start, one_line
from private_mounts import in_private_mounts, mount
from service import PATIENCE, eventually


class Journal:
    """The socket of systemd's journal, for the processes that see this test's mounts."""

    def __init__(self, listens=True):
        mount("/run", "tmpfs", size="1m")
        if listens:
            os.makedirs("/run/systemd/journal")
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.socket.settimeout(PATIENCE)
            self.socket.bind("/run/systemd/journal/socket")

    def entry(self, message):
        """The next entry with such a message: its fields."""
        while True:
            lines = self.socket.recv(65536).decode().splitlines()
            fields = dict(line.split("=", 1) for line in lines)
            if fields["MESSAGE"].startswith(message):
                return fields


def changed(service, journal):
    """The entry about a changed configuration."""
    os.kill(service.pid, signal.SIGHUP)
    return journal.entry("configuration reloaded")


@in_private_mounts
def test_entries_have_fields(fresh):
    journal = Journal()
    service = fresh("--log-format", "journald", "--log-level", "debug").start()
    assert changed(service, journal) == {
        "MESSAGE": "configuration reloaded changed=nothing", "PRIORITY": "5", "SYSLOG_IDENTIFIER": "herald",
        "HERALD_LOGGER": "herald", "HERALD_CHANGED": "nothing",
    }
    service.stop()
    assert not any("herald:" in line for line in service.lines), "standard error has nothing"
    service.close()


@in_private_mounts
def test_a_log_of_text_becomes_entries_where_the_journal_reads_it(fresh, tmp_path):
    journal = Journal()
    log = tmp_path / "stderr"
    log.touch()
    stream = f"{log.stat().st_dev}:{log.stat().st_ino}"
    for named, is_journal in ((stream, True), ("1:2", False)):
        log.write_text("")
        start = ("env", f"JOURNAL_STREAM={named}", "bash", "-c", f'exec "$@" 2>>{log}', "bash")
        service = fresh(prefix=start).start()
        os.kill(service.pid, signal.SIGHUP)
        if is_journal:
            assert journal.entry("configuration reloaded")["HERALD_LOGGER"] == "herald"
        else:
            eventually(lambda: "notice herald: configuration reloaded" in log.read_text(), what="the line")
        service.stop()
        assert ("configuration reloaded" in log.read_text()) != is_journal
        service.close()


@in_private_mounts
def test_without_a_journal_its_format_is_refused(tmp_path):
    Journal(listens=False)
    assert "write text or json" in one_line(failed_start(tmp_path / "data", "--log-format", "journald"))
