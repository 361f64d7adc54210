"""The figure of a cluster's store: commits to three NATS servers, beside a bare publisher on the same connection code."""

import itertools
import json
import pathlib
import shutil
import subprocess
import time
import urllib.request

from machine import ON_LOAD_CORES, ON_SERVER_CORE, RELEASE, WORK, exact_cpu_seconds
from nats_figures import NATS_SERVER
from report import median

# Notifications of a run, those in flight, and the bytes of each payload.
COUNT, WINDOW, BYTES = 60_000, 512, 500
PEERS = ["127.77.0.1", "127.77.0.2", "127.77.0.3"]


def cluster(settings, report):
    """Commits with three replicas, every write synced. All three servers share a core.

    The ratio by CPU is that of client and servers together; the client's and the servers' stand beside it.
    """
    folder = WORK / "cluster"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        [RELEASE / "herald", "cluster", "nats-conf", "--peers", ",".join(PEERS), "--output", folder, "--store", folder / "stores"],
        check=True, capture_output=True,
    )
    servers = []
    try:
        for peer in PEERS:
            path = folder / f"nats-{peer}.conf"
            # The client of the bench has no key.
            path.write_text(path.read_text().split("# Herald's only user")[0])
            with path.with_suffix(".log").open("w") as log:
                servers.append(subprocess.Popen(
                    [*ON_SERVER_CORE, str(NATS_SERVER), "--config", str(path)], stdout=log, stderr=subprocess.STDOUT,
                ))
        _await()
        outcomes, first = {"store": [], "bare": []}, itertools.count(1, COUNT)
        for number in range(settings.rounds):
            for mode in ("store", "bare") if number % 2 else ("bare", "store"):
                before = sum(exact_cpu_seconds(server.pid) for server in servers)
                outcome = _run(mode, next(first))
                spent = sum(exact_cpu_seconds(server.pid) for server in servers) - before
                outcomes[mode].append(outcome | {"servers_us": spent * 1e6 / COUNT})
    finally:
        for server in servers:
            server.kill()
            server.wait()
    ours, bare = ([median(outcomes[mode], key) for key in ("cpu_us", "servers_us")] for mode in ("store", "bare"))
    report.figure(
        "cluster_commit", [o["rate"] for o in outcomes["store"]], [o["rate"] for o in outcomes["bare"]], "commits/s",
        "publisher", by_cpu=sum(bare) / sum(ours),
        note=f"client {ours[0]:.2f} and {bare[0]:.2f} us CPU each, the servers {ours[1]:.1f} and {bare[1]:.1f}, by CPU "
        f"{sum(bare) / sum(ours):.2f}; {BYTES} bytes, {WINDOW} in flight",
    )


def _await():
    """Waits until each server is healthy, and all agree on the leader that makes streams."""
    end = time.monotonic() + 60
    while True:
        try:
            leaders = {_state(peer, "jsz?meta=1").get("meta_cluster", {}).get("leader") for peer in PEERS}
            if len(leaders) == 1 and None not in leaders and all(_state(peer, "healthz")["status"] == "ok" for peer in PEERS):
                return
        except OSError:
            pass
        if time.monotonic() > end:
            raise RuntimeError("the nats-servers do not start")
        time.sleep(0.1)


def _state(peer, name):
    with urllib.request.urlopen(f"http://{peer}:8222/{name}", timeout=5) as answer:
        return json.load(answer)


def _run(mode, first):
    command = [RELEASE / "ClusterBench", "--mode", mode, "--count", COUNT, "--first", first, "--window", WINDOW, "--payload", BYTES]
    for peer in PEERS:
        command += ["--server", f"nats://{peer}"]
    run = subprocess.run([*ON_LOAD_CORES, *map(str, command)], capture_output=True, text=True, timeout=300)
    if run.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} {mode} failed: {(run.stderr or run.stdout).strip()[-300:]}")
    return json.loads(run.stdout.splitlines()[-1])
