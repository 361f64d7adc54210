"""A witness of system calls: no 200 leaves before the sync that covers it has returned.

A kill cannot tell a service that syncs from one that does not: the page cache outlives the process. strace can.
"""

import dataclasses
import re
import uuid

import pytest

from parties import assert_accepted
from provider import Provider, away_device

CALLS = "trace=write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync"
# A sync takes this long at the least (microseconds), so that an answer that does not wait for it is surely before its end.
SLOW_SYNC = "inject=fsync,fdatasync:delay_enter=2000"
# A sync says that it has succeeded, and has done nothing.
NO_SYNC = "inject=fsync,fdatasync:retval=0"
LINE = re.compile(r"^(?P<thread>\d+) +(?P<text>.*)$")
ENTRY = re.compile(r"^(?P<call>\w+)\((?P<file>\d+)<(?P<path>.*?)>(?=[,)]| <unfinished)")
# The last one in its line: what is written may look like anything.
RESULT = re.compile(r".*\) += (?P<result>-?\d+)(?P<injected>.*\(INJECTED\))?")
REQUEST_COUNT = 60


@dataclasses.dataclass
class Call:
    """One system call: when it was entered and when it returned, as line numbers of the trace."""

    name: str
    path: str
    #: The arguments, as strace writes them.
    text: str
    entered: int
    returned: int
    #: The returned value; -1 for a call that strace suppressed.
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
        result = RESULT.match(text)
        if start and result:
            entered, entry = start
            value = -1 if result["injected"] else int(result["result"])
            calls.append(Call(entry["call"], entry["path"], entry.string, entered, number, value))
    return calls


def is_answer(call, port):
    """A write to the provider of at least the smallest answer; acknowledgements and window updates are smaller."""
    return call.name in ("write", "writev", "sendto", "sendmsg") and f":{port}->" in call.path and call.result >= 50


def is_log_write(call):
    return call.name in ("pwrite64", "pwritev", "write") and call.path.endswith("-wal") and call.result > 0


def is_log_sync(call):
    return call.name in ("fsync", "fdatasync") and call.path.endswith("-wal") and call.result == 0


def verdicts(calls, port, marks):
    """For each mark, in the order of the requests, whether what carried it was written to the log and synced before the
    answer left.

    Nothing is concluded from when a request was read, since the client sends other things as well (the acknowledgement of
    our SETTINGS, which comes at any time), nor from other writes to the log, since others have things stored as well. A
    commit is written in one go and synced once, at its end, so a sync that begins after the write covers the commit.
    The answers are the last writes to the provider; that each is the answer to its own request shows in that the next
    request, which the client sends only then, is written after it.
    """
    answers = [call for call in calls if is_answer(call, port)][-len(marks):]
    writes = [next((call for call in calls if is_log_write(call) and mark in call.text), None) for mark in marks]
    syncs = [call for call in calls if is_log_sync(call)]
    if len(answers) < len(marks):
        return [False] * len(marks)
    return [
        write is not None
        and (number == 0 or write.entered > answers[number - 1].entered)
        and any(sync.entered > write.returned and sync.returned < answers[number].entered for sync in syncs)
        for number, write in enumerate(writes)
    ]


@pytest.fixture
def witness(fresh, tmp_path):
    """Pushes to an absent device, one request at a time, and says of each what `verdicts` says."""
    trace = tmp_path / "trace"

    def push(syncs, **options):
        # Long enough for a page of the log.
        strace = ["strace", "-f", "-yy", "-s", "4096", "-o", str(trace), "-e", CALLS, "-e", syncs]
        service = fresh(prefix=strace).start()
        device = away_device(service)
        marks = [uuid.uuid4().hex for _ in range(REQUEST_COUNT)]
        with Provider(service, service.provider_certificate()) as provider:
            for mark in marks:
                assert_accepted(provider.push(device.token, {"aps": {"alert": "hello"}, "mark": mark}, **options))
        service.stop()
        return verdicts(read_trace(trace.read_text(errors="replace")), service.listeners["api"], marks)

    return push


def test_every_success_is_sent_after_its_sync(witness):
    results = witness(SLOW_SYNC)
    early = [number for number, result in enumerate(results) if not result]
    assert not early, f"answers that left before the sync: {early} of {REQUEST_COUNT}"


def test_the_trace_shows_an_unstored_notification(witness):
    """Control: what is not to be stored is answered without waiting for any sync."""
    assert witness(SLOW_SYNC, expiration=0).count(True) == 0


def test_the_trace_shows_an_unsynced_notification(witness):
    """Control: the service asks for its syncs and waits for them, and there are none."""
    assert witness(NO_SYNC).count(True) == 0


TRACE = """\
7 write(9<TCP:[127.0.0.1:2197->127.0.0.1:5000]>, "\\27\\3"..., 91) = 91
8 pwrite64(12</d/store/herald.db-wal>, "\\0\\0) = 7 mark-1 \\0", 4096, 32) = 4096
8 pwrite64(12</d/store/herald.db-wal>, "\\0\\0 rest of the commit", 4096, 4152) = 4096
8 fdatasync(12</d/store/herald.db-wal> <unfinished ...>
7 write(9<TCP:[127.0.0.1:2197->127.0.0.1:5000]>, "\\27\\3", 31) = 31
8 <... fdatasync resumed>)          = 0
8 pwrite64(12</d/store/herald.db-wal>, "somebody else's", 4096, 8272) = 4096
7 write(9<TCP:[127.0.0.1:2197->127.0.0.1:5000]>, "\\27\\3", 90) = 90
"""


def judge(lines, *marks):
    return verdicts(read_trace("\n".join(lines)), 2197, marks or ["mark-1"])


class TestVerdicts:
    lines = TRACE.splitlines()

    def test_a_trace_is_read(self):
        calls = read_trace(TRACE)
        assert [call.name for call in calls] == ["write", "pwrite64", "pwrite64", "write", "fdatasync", "pwrite64", "write"]
        assert [call.result for call in calls] == [91, 4096, 4096, 31, 0, 4096, 90]
        assert (calls[4].entered, calls[4].returned) == (3, 5)

    def test_a_foreign_commit_before_the_answer_is_ignored(self):
        assert judge(self.lines) == [True]

    def test_a_sync_after_the_answer_does_not_count(self):
        lines = self.lines
        assert judge([*lines[:5], lines[7], lines[5]]) == [False]

    def test_a_sync_before_the_write_does_not_count(self):
        lines = self.lines
        assert judge([lines[0], "8 fdatasync(12</d/store/herald.db-wal>) = 0", *lines[1:3], lines[7]]) == [False]

    def test_a_sync_of_another_file_does_not_count(self):
        assert judge([line.replace("fdatasync(12</d/store/herald.db-wal>", "fdatasync(13</d/x>") for line in self.lines]) == [False]

    def test_a_failed_sync_does_not_count(self):
        failed = [line.replace("resumed>)          = 0", "resumed>) = -1 EIO (Input/output error)") for line in self.lines]
        assert judge(failed) == [False]

    def test_an_unfinished_sync_does_not_count(self):
        assert judge([line.replace("        = 0", "        = 0 (INJECTED)") for line in self.lines]) == [False]
        assert judge([line.replace("        = 0", "        = 0 (DELAYED)") for line in self.lines]) == [True]

    def test_an_unwritten_request_does_not_count(self):
        assert judge(self.lines, "mark-2") == [False]

    def test_the_write_of_a_later_request_does_not_count(self):
        # Two writes to the provider, of which the first was not an answer: the second request cannot have come before it.
        lines = self.lines
        second = [line.replace("mark-1", "mark-2") for line in lines[1:6]]
        assert judge([*lines[1:6], lines[7], *second, lines[7]], "mark-1", "mark-2") == [True, True]
        assert judge([*lines[1:6], *second, lines[7], lines[7]], "mark-1", "mark-2") == [True, False]
