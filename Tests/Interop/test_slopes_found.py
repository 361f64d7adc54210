"""The statistics of `test_slopes.py` find a leak, and do not invent one."""

import random
import subprocess
import sys

import pytest

from slopes import measure, slope

#: A process that keeps, for each line that it reads, so many bytes in use for good or until the next line.
CHILD = """
import sys
kept = []
for line in sys.stdin:
    what, size = line.split()
    held = b"x" * int(size)
    if what == "leak":
        kept.append(held)
    print("done", flush=True)
"""
KIB, MIB = 1024, 1 << 20


def noisy(growth, count=400, seed=1):
    """Samples of something that grows by so much in all, is noisy, stays on a level for some time, and has peaks."""
    chance = random.Random(seed)
    level, values = 0, []
    for number in range(count):
        level = chance.gauss(0, 100) if chance.random() < 0.2 else level
        peak = 5000 if chance.random() < 0.05 else 0
        values.append(10_000 + growth * number / count + level + peak)
    return list(range(count)), values


def test_the_estimate_is_the_slope_of_a_line():
    found = slope([0.5 * number for number in range(100)], [3 * number for number in range(100)])
    assert found.low == pytest.approx(found.growth) == pytest.approx(found.high) == pytest.approx(297)


@pytest.mark.parametrize("seed", range(10))
def test_noise_and_peaks_are_no_slope(seed):
    found = slope(*noisy(0, seed=seed))
    assert not found.exceeds(150)
    assert found.high < 400, "the interval is too wide to find anything"


@pytest.mark.parametrize("seed", range(10))
def test_a_slope_below_noise_and_peaks_is_found(seed):
    assert slope(*noisy(1000, seed=seed)).exceeds(300)


def test_a_long_peak_is_no_slope_and_too_few_samples_are_an_error():
    times, values = noisy(0)
    values[30:40] = [90_000] * 10
    assert not slope(times, values).exceeds(150)
    with pytest.raises(AssertionError, match="too few"):
        slope(times[:10], values[:10])


def memory_of(what):
    """The samples of a process that works, and leaks or does not."""
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        samples = []
        chance = random.Random(1)
        for _ in range(200):
            child.stdin.write(f"{what} {64 * KIB + chance.randrange(KIB)}\n")
            child.stdin.flush()
            assert child.stdout.readline() == "done\n"
            samples.append(measure(child.pid)["memory"])
        child.stdin.close()
    return samples[50:]


def test_a_process_that_leaks_is_found_and_one_that_does_not_is_not():
    leaking, sound = (slope(range(150), memory_of(what)) for what in ("leak", "work"))
    assert leaking.exceeds(4 * MIB) and leaking.high < 16 * MIB
    assert not sound.exceeds(MIB) and sound.high < MIB
