"""The figure of the NATS client: publishes to a stream, beside libnats, the client in C."""

import json
import pathlib
import socket
import subprocess
import sys
import time

from machine import ON_LOAD_CORES, ON_SERVER_CORE, RELEASE, ROOT, WORK
from report import median

NATS_SERVER = pathlib.Path(sys.executable).parent / "nats-server"
# Messages of a run, those in flight, and their size in bytes.
COUNT, WINDOW, BYTES = 200_000, 1024, 500


def nats(settings, report):
    """Publishes with acknowledgement to a stream in the memory of one server. The CPU time of the client counts."""
    peer = WORK / "nats_peer"
    subprocess.run(["cc", "-O2", "-o", str(peer), str(ROOT / "Benchmarks" / "nats_peer.c"), "-lnats"], check=True)
    outcomes = {"ours": [], "peer": []}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"nats://127.0.0.1:{port}"
    with (WORK / "nats.log").open("w") as log:
        server = subprocess.Popen(
            [*ON_SERVER_CORE, str(NATS_SERVER), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(WORK / "nats")],
            stdout=log, stderr=subprocess.STDOUT,
        )
    try:
        _await(port)
        subprocess.run(
            [RELEASE / "NATSBench", "stream", "--server", url, "--subject", "bench"], check=True, timeout=60,
        )
        for _ in range(settings.rounds):
            outcomes["ours"].append(_run([
                RELEASE / "NATSBench", "publish", "--server", url, "--subject", "bench", "--count", COUNT,
                "--window", WINDOW, "--payload", BYTES,
            ]))
            outcomes["peer"].append(_run([peer, url, "bench", COUNT, WINDOW, BYTES]))
    finally:
        server.kill()
        server.wait()
    ours, peers = (median(outcomes[side], "cpu_us") for side in ("ours", "peer"))
    report.figure("nats", [o["rate"] for o in outcomes["ours"]], [o["rate"] for o in outcomes["peer"]], "publishes/s",
                  "libnats", by_cpu=peers / ours, note=f"{ours:.2f} and {peers:.2f} us CPU of the client each; {BYTES} bytes, "
                  f"{WINDOW} in flight")


def _await(port):
    end = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > end:
                raise RuntimeError("nats-server does not start") from None
            time.sleep(0.05)


def _run(command):
    run = subprocess.run([*ON_LOAD_CORES, *map(str, command)], capture_output=True, text=True, timeout=300)
    if run.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} failed: {(run.stderr or run.stdout).strip()[-300:]}")
    return json.loads(run.stdout.splitlines()[-1])
