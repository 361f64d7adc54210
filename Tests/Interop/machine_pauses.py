"""The time for which this machine runs nothing: a bound of a test can make room for it, and no more than that."""

import threading
import time

#: Seconds between two looks at the clock.
TICK = 0.01


class Pauses(threading.Thread):
    """Notes inside of `with` how late a thread runs that was to run every few milliseconds."""

    def __init__(self):
        super().__init__(daemon=True)
        self._ends = threading.Event()
        self._longest = 0

    def run(self):
        before = time.monotonic()
        while not self._ends.wait(TICK):
            now = time.monotonic()
            self._longest = max(self._longest, now - before - TICK)
            before = now

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self.join()

    def take(self):
        """Seconds of the longest pause since the last call."""
        longest, self._longest = self._longest, 0
        return longest
