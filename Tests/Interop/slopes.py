"""Samples of a process's memory, descriptors, threads and files, and the slope of a series of them."""

import dataclasses
import math
import os
import pathlib
import statistics
import threading

#: Neighbouring samples are not independent: memory stays on a level, and a file grows by pages. The medians of so many blocks are
#: closer to it, and robust against a peak.
BLOCKS = 24
#: Of the normal distribution, for 99 % on both sides: a run has ten series, or forty.
QUANTILE = 2.576


@dataclasses.dataclass(frozen=True)
class Slope:
    """Growth of a series over its whole length: the estimate of Theil and Sen, and the confidence interval of Sen."""

    growth: float
    low: float
    high: float

    def exceeds(self, limit):
        """Whether the series surely grew by more than the limit."""
        return self.low > limit


def slope(times, values):
    """The slope of a series of samples (at least as many as there are blocks).

    The median of the slopes of all pairs: up to 29 % of the points may be outliers. The interval is from Kendall's statistic
    (Sen 1968), and needs no assumption on the distribution.
    """
    assert len(values) >= BLOCKS, f"{len(values)} samples are too few"
    points = [*zip(levels(times), levels(values))]
    slopes = sorted((y - x) / (t - s) for number, (s, x) in enumerate(points) for t, y in points[number + 1 :])
    width = QUANTILE * math.sqrt(BLOCKS * (BLOCKS - 1) * (2 * BLOCKS + 5) / 18)
    low = slopes[max(0, math.floor((len(slopes) - width) / 2))]
    high = slopes[min(len(slopes) - 1, math.ceil((len(slopes) + width) / 2))]
    length = times[-1] - times[0]
    return Slope(statistics.median(slopes) * length, low * length, high * length)


def levels(values):
    """The medians of the blocks."""
    ends = [block * len(values) // BLOCKS for block in range(BLOCKS + 1)]
    return [statistics.median(values[first:end]) for first, end in zip(ends, ends[1:])]


class Watch(threading.Thread):
    """Takes a sample every few seconds: what `take` returns, figures by name."""

    def __init__(self, take, clock, interval=2):
        super().__init__(daemon=True)
        self.take, self.clock, self.interval = take, clock, interval
        self.times = []
        #: The samples of each series.
        self.series = {}
        self.error = None
        self._is_over = threading.Event()

    def sample(self):
        for name, value in self.take().items():
            self.series.setdefault(name, []).append(value)
        self.times.append(self.clock())

    def run(self):
        try:
            while not self._is_over.wait(self.interval):
                self.sample()
        except Exception as error:
            self.error = error

    def stop(self):
        self._is_over.set()
        self.join()
        if self.error:
            raise self.error

    def slopes(self, begin):
        """The slope of each series from a moment on."""
        first = next(number for number, time in enumerate(self.times) if time >= begin)
        return {name: slope(self.times[first:], values[first:]) for name, values in self.series.items()}


def measure(pid, files=()):
    """The memory of a process without mapped files (bytes), its descriptors and threads, and the sizes of files and folders."""
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    found = {
        "memory": int(status["RssAnon"].split()[0]) * 1024,
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(status["Threads"]),
    }
    for file in files:
        found[file.name] = size(file)
    return found


def size(path):
    """The size of a file, or of all files in a folder."""
    total = 0
    for each in [path, *path.rglob("*")]:
        try:
            total += each.lstat().st_size if each.is_file() else 0
        except FileNotFoundError:
            # A file that was replaced meanwhile.
            pass
    return total
