"""The time for which this machine does not run what is due: a bound of a test can make room for it, and no more than that."""

import threading
import time

#: Seconds between two looks at the clock.
TICK = 0.01


class Pauses(threading.Thread):
    """Adds up inside of `with` how late a thread runs that is due every few milliseconds."""

    def __init__(self):
        super().__init__(daemon=True)
        self._ends = threading.Event()
        self._sum = 0

    def run(self):
        before = time.monotonic()
        while not self._ends.wait(TICK):
            now = time.monotonic()
            self._sum += now - before - TICK
            before = now

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self.join()

    def take(self):
        """Seconds by which the thread was late since the last call, all together."""
        found, self._sum = self._sum, 0
        return found
