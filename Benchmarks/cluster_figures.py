"""The figures of a cluster: its store, beside a bare publisher on the same connection code; then those of several nodes."""

import itertools
import json
import pathlib
import subprocess

from machine import ON_LOAD_CORES, RELEASE, WORK
from nats_trio import Trio
from node_figures import arrival, elsewhere, more_nodes
from report import median

# Notifications of a run, those in flight, and the bytes of each payload.
COUNT, WINDOW, BYTES = 60_000, 512, 500


def cluster(settings, report):
    """All figures of a cluster."""
    for figure in (_commits, elsewhere, more_nodes, arrival):
        figure(settings, report)


def _commits(settings, report):
    """Commits with three replicas, every write synced. All three servers share a core.

    The ratio by CPU is that of client and servers together; the client's and the servers' stand beside it.
    """
    outcomes, first = {"store": [], "bare": []}, itertools.count(1, COUNT)
    with Trio(WORK / "cluster") as trio:
        for number in range(settings.rounds):
            for mode in ("store", "bare") if number % 2 else ("bare", "store"):
                outcomes[mode].append(_run(trio, mode, next(first)))
    ours, bare = ([median(outcomes[mode], key) for key in ("cpu_us", "servers_us")] for mode in ("store", "bare"))
    report.figure(
        "cluster_commit", [o["rate"] for o in outcomes["store"]], [o["rate"] for o in outcomes["bare"]], "commits/s",
        "publisher", by_cpu=sum(bare) / sum(ours),
        note=f"client {ours[0]:.2f} and {bare[0]:.2f} us CPU each, the servers {ours[1]:.1f} and {bare[1]:.1f}, by CPU "
        f"{sum(bare) / sum(ours):.2f}; {BYTES} bytes, {WINDOW} in flight",
    )


def _run(trio, mode, first):
    command = [RELEASE / "ClusterBench", "--mode", mode, "--count", COUNT, "--first", first, "--window", WINDOW, "--payload", BYTES]
    for url in trio.urls:
        command += ["--server", url]
    before = trio.cpu_seconds()
    run = subprocess.run([*ON_LOAD_CORES, *map(str, command)], capture_output=True, text=True, timeout=300)
    if run.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} {mode} failed: {(run.stderr or run.stdout).strip()[-300:]}")
    return json.loads(run.stdout.splitlines()[-1]) | {"servers_us": (trio.cpu_seconds() - before) * 1e6 / COUNT}
