"""A machine's wall clock that a test moves: libfaketime for one process, and nothing but that clock."""

import glob


class MachineClock:
    def __init__(self, folder):
        (library,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        self._offset = folder / "clock-offset"
        #: Seconds that the clock is ahead.
        self.ahead = 0
        self.move(0)
        #: The words before the command of a process on this machine.
        #:
        #: The C library comes before jemalloc, which asks for the time before libfaketime is ready. The inner `env` gets
        #: the variables that libfaketime adds to its own process; Swift would not find its arguments behind them.
        self.prefix = (
            "env", f"LD_PRELOAD={library} libc.so.6", f"FAKETIME_TIMESTAMP_FILE={self._offset}", "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1", "env",
        )

    def move(self, ahead):
        """Sets how many seconds the clock is ahead of the right time; negative for back."""
        self.ahead = ahead
        # In place of the old file at once: the process may read it at any moment.
        draft = self._offset.with_suffix(".draft")
        draft.write_text(f"{ahead:+d}")
        draft.replace(self._offset)
