"""A witness of system calls: no 200 leaves before the sync that covers it has returned.

A kill cannot tell a service that syncs from one that does not: the page cache outlives the process. strace can.
"""

import dataclasses
import re

import pytest

from parties import assert_accepted
from provider import Provider, away_device

CALLS = "trace=read,recvfrom,recvmsg,readv,write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync"
LINE = re.compile(r"^(?P<thread>\d+) +(?P<text>.*)$")
ENTRY = re.compile(r"^(?P<call>\w+)\((?P<file>\d+)<(?P<path>.*?)>(?=[,)]| <unfinished)")
RESULT = re.compile(r"\) += (?P<result>-?\d+)")
REQUEST_COUNT = 60


@dataclasses.dataclass
class Call:
    """One system call: when it was entered and when it returned, as line numbers of the trace."""

    name: str
    path: str
    entered: int
    returned: int
    result: int


def read_trace(text):
    """The calls of a trace in the order of their return."""
    calls, begun = [], {}
    for number, line in enumerate(text.splitlines()):
        match = LINE.match(line)
        if not match:
            continue
        thread, text = match["thread"], match["text"]
        if text.startswith("<... "):
            start = begun.pop(thread, None)
        else:
            start = ENTRY.match(text) and (number, ENTRY.match(text))
            if text.endswith("<unfinished ...>"):
                begun[thread] = start
                continue
        result = RESULT.search(text)
        if start and result:
            entered, entry = start
            calls.append(Call(entry["call"], entry["path"], entered, number, int(result["result"])))
    return calls


def is_reading(call, port):
    return call.name in ("read", "recvfrom", "recvmsg", "readv") and f":{port}->" in call.path and call.result > 0


def is_answer(call, port):
    """A write to the provider of at least the smallest answer; acknowledgements and window updates are smaller."""
    return call.name in ("write", "writev", "sendto", "sendmsg") and f":{port}->" in call.path and call.result >= 50


def is_log_write(call):
    return call.name in ("pwrite64", "pwritev", "write") and call.path.endswith("-wal") and call.result > 0


def is_log_sync(call):
    return call.name in ("fsync", "fdatasync") and call.path.endswith("-wal") and call.result == 0


def verdicts(calls, port):
    """For each answer whether, since its request was read, the log was written and that write synced before it left.

    Only one request is under way at a time, so what is read from the socket last before an answer is its request.
    """
    results = []
    request = None
    for call in calls:
        if is_reading(call, port):
            request = call
        elif is_answer(call, port) and request:
            between = [c for c in calls if c.entered > request.entered and c.returned < call.entered]
            writes = [c for c in between if is_log_write(c)]
            syncs = [c for c in between if is_log_sync(c)]
            results.append(bool(writes and syncs and any(sync.entered > writes[-1].returned for sync in syncs)))
            request = None
    return results


@pytest.fixture
def witness(fresh, tmp_path):
    """Pushes to an absent device, one request at a time, and says of each what `verdicts` says."""
    trace = tmp_path / "trace"
    service = fresh(prefix=["strace", "-f", "-yy", "-s", "0", "-o", str(trace), "-e", CALLS]).start()
    device = away_device(service)

    def push(**options):
        with Provider(service, service.provider_certificate()) as provider:
            for _ in range(REQUEST_COUNT):
                assert_accepted(provider.push(device.token, **options))
        service.stop()
        # What is before the requests is the handshake.
        return verdicts(read_trace(trace.read_text(errors="replace")), service.doors["api"])[-REQUEST_COUNT:]

    return push


def test_every_success_leaves_after_the_sync_that_covers_it(witness):
    results = witness()
    assert len(results) == REQUEST_COUNT
    assert all(results), f"{results.count(False)} answers left before the sync"


def test_the_witness_can_tell(witness):
    """Control: what is not to be stored is answered without waiting for any sync, and the witness says so."""
    # The journal's own writes come now and then, in between.
    assert witness(expiration=0).count(True) < REQUEST_COUNT / 4


TRACE = """\
7 read(9<TCP:[127.0.0.1:2197->127.0.0.1:5000]>, ""..., 65536) = 120
8 pwrite64(12</d/store/herald.db-wal>, ""..., 4120, 32) = 4120
8 fdatasync(12</d/store/herald.db-wal> <unfinished ...>
7 read(9<TCP:[127.0.0.1:2197->127.0.0.1:5000]>, 0x7f, 65536) = -1 EAGAIN (Resource temporarily unavailable)
8 <... fdatasync resumed>) = 0
7 write(9<TCP:[127.0.0.1:2197->127.0.0.1:5000]>, ""..., 90) = 90
"""


class TestTheWitnessItself:
    def test_it_reads_a_trace(self):
        calls = read_trace(TRACE)
        assert [call.name for call in calls] == ["read", "pwrite64", "read", "fdatasync", "write"]
        assert verdicts(calls, 2197) == [True]

    def test_a_sync_that_returns_after_the_answer_does_not_count(self):
        lines = TRACE.splitlines()
        assert verdicts(read_trace("\n".join([*lines[:4], lines[5], lines[4]])), 2197) == [False]

    def test_a_sync_before_the_write_does_not_count(self):
        lines = TRACE.splitlines()
        early = "8 fdatasync(12</d/store/herald.db-wal>) = 0"
        assert verdicts(read_trace("\n".join([lines[0], early, lines[1], lines[5]])), 2197) == [False]

    def test_a_sync_of_another_file_does_not_count(self):
        assert verdicts(read_trace(TRACE.replace("fdatasync(12</d/store/herald.db-wal>", "fdatasync(13</d/x>")), 2197) == [False]

    def test_a_failed_sync_does_not_count(self):
        failed = TRACE.replace("resumed>) = 0", "resumed>) = -1 EIO (Input/output error)")
        assert verdicts(read_trace(failed), 2197) == [False]
