"""A machine's wall clock that a test moves: libfaketime for one process, and nothing but that clock."""

import glob
import pathlib


def library(folder):
    """A copy of libfaketime that leaves timers alone.

    libfaketime 0.9.10 moves the absolute time of every `timerfd_settime` by the offset of the wall clock, whichever clock
    the timer has ("only CLOCK_REALTIME is handled"). Swift's `Task.sleep` sets such a timer by the monotonic clock. Two days
    ahead, on a machine that has been up for less, its time would be negative: the kernel refuses it, and every sleep of the
    process lasts forever. No variable turns that off; a name that nobody looks up does.
    """
    (original,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    content = pathlib.Path(original).read_bytes()
    name, other = b"\0timerfd_settime\0", b"\0timerfd_untouch\0"
    # The exported name comes first; the second one is what the library itself looks for, in vain from now on.
    assert name in content, f"{original} no longer wraps timerfd_settime: it can be used as it is"
    copy = folder / "libfaketime.so"
    # A process that still runs may have it in its memory.
    if not copy.exists():
        copy.write_bytes(content.replace(name, other, 1))
    return copy


class MachineClock:
    def __init__(self, folder):
        self._offset = folder / "clock-offset"
        #: Seconds that the clock is ahead.
        self.ahead = 0
        self.move(0)
        #: The words before the command of a process on this machine.
        #:
        #: The C library comes before jemalloc, which asks for the time before libfaketime is ready. The inner `env` gets
        #: the variables that libfaketime adds to its own process; Swift would not find its arguments behind them.
        self.prefix = (
            "env", f"LD_PRELOAD={library(folder)} libc.so.6", f"FAKETIME_TIMESTAMP_FILE={self._offset}", "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1", "env",
        )

    def move(self, ahead):
        """Sets how many seconds the clock is ahead of the right time; negative for back."""
        self.ahead = ahead
        # In place of the old file at once: the process may read it at any moment.
        draft = self._offset.with_suffix(".draft")
        draft.write_text(f"{ahead:+d}")
        draft.replace(self._offset)
