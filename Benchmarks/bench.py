"""Measures Herald beside its peers, in turn, each server on one core and its load on the other.

Machines drift by more than servers differ, so nothing is compared but runs of the same minutes: the rounds alternate,
and a figure is the median of its rounds. CPU time per unit is printed beside each rate: it drifts less.
"""

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

from peers import Herald, Identities, Mosquitto, Nginx, cpu_seconds, device_load, h2load, private_memory

ROOT = pathlib.Path(__file__).resolve().parents[1]
RELEASE = ROOT / ".build" / "release"
ROUNDS = int(os.environ.get("HERALD_BENCH_ROUNDS", "5"))
DEVICES = int(os.environ.get("HERALD_BENCH_DEVICES", "1000"))
IDLE = int(os.environ.get("HERALD_BENCH_IDLE", "10000"))
TOPIC = "com.example.bench"

results = {}


def report(name, ours, peer, unit, peer_name, lower_is_better=False, note=""):
    """Notes a figure; above 1 is better than the peer."""
    ours, peer = statistics.median(ours), statistics.median(peer)
    ratio = (peer / ours) if lower_is_better else (ours / peer)
    results[name] = {
        "ours": round(ours, 3), "peer": round(peer, 3), "ratio": round(ratio, 3), "unit": unit, "peer_name": peer_name,
    }
    print(f"{name:24} {ours:12,.1f}  {peer_name} {peer:12,.1f}  {unit:22} ratio {ratio:5.2f}  {note}", flush=True)


def measured(server, run):
    """Runs a load, and adds the server's CPU time to what it measured."""
    before = cpu_seconds(server.pid)
    outcome = run()
    outcome["cpu"] = cpu_seconds(server.pid) - before
    return outcome


def per_unit(outcomes, count):
    return f"{statistics.median(o['cpu'] / max(1, o[count]) * 1e6 for o in outcomes):.1f} us"


def gateway(folder, identities):
    """h2load, 10 connections of 100 streams; every 200 durable. The peer answers 200 to the same requests."""
    with Herald(folder / "gateway", identities) as herald, Nginx(folder / "nginx") as nginx:
        requests = herald.requests(TOPIC, min(DEVICES, 1000))
        ours, peer = [], []
        for _ in range(ROUNDS):
            ours.append(measured(herald, lambda: h2load(herald.port("api"), requests)))
            peer.append(measured(nginx, lambda: h2load(nginx.port, requests)))
        assert all(o["failed"] == 0 for o in ours), "requests failed"
        report("gateway", [o["rate"] for o in ours], [o["rate"] for o in peer], "notifications/s", "nginx",
               note=f"device away, durable; CPU {per_unit(ours, 'done')}, nginx {per_unit(peer, 'done')}")


def gateway_connected(folder, identities):
    with Herald(folder / "connected", identities) as herald, Nginx(folder / "nginx2") as nginx:
        requests = herald.requests(TOPIC, min(DEVICES, 1000))
        ours, peer = [], []
        with device_load(herald.port("device"), herald.ca, identities, min(DEVICES, 1000), f"apps/{TOPIC}", hold=True):
            for _ in range(ROUNDS):
                ours.append(measured(herald, lambda: h2load(herald.port("api"), requests)))
                peer.append(measured(nginx, lambda: h2load(nginx.port, requests)))
        assert all(o["failed"] == 0 for o in ours), "requests failed"
        report("gateway_connected", [o["rate"] for o in ours], [o["rate"] for o in peer], "notifications/s", "nginx",
               note=f"1,000 devices connected; CPU {per_unit(ours, 'done')}, nginx {per_unit(peer, 'done')}")


def courier(folder, identities):
    """1,000 devices receive QoS 1 notifications: ours enter through the post office inside the server."""
    ours, peer = [], []
    with Mosquitto(folder / "mosquitto", identities) as mosquitto:
        for _ in range(ROUNDS):
            with Herald(folder / "courier", identities, program="CourierBench", arguments=["--window", "256"]) as herald:
                ours.append(measured(herald, lambda: device_load(
                    herald.port("device"), herald.ca, identities, DEVICES, f"apps/{TOPIC}")))
            peer.append(measured(mosquitto, lambda: device_load(
                mosquitto.port, mosquitto.ca, identities, DEVICES, "d/{n}", publish="d/{n}", publishers=4)))
    report("courier", [o["rate"] for o in ours], [o["rate"] for o in peer], "notifications/s", "mosquitto",
           note=f"CPU {per_unit(ours, 'received')}, mosquitto {per_unit(peer, 'received')}")


def courier_p99(folder, identities):
    """From send to receipt at 4,000 a second."""
    ours, peer = [], []
    with Mosquitto(folder / "mosquitto2", identities) as mosquitto:
        for _ in range(ROUNDS):
            with Herald(folder / "courier", identities, program="CourierBench", arguments=["--rate", "4000"]) as herald:
                ours.append(device_load(herald.port("device"), herald.ca, identities, DEVICES, f"apps/{TOPIC}"))
            peer.append(device_load(
                mosquitto.port, mosquitto.ca, identities, DEVICES, "d/{n}", publish="d/{n}", publishers=4, rate=4000))
    report("courier_p99", [o["p99_ms"] for o in ours], [o["p99_ms"] for o in peer], "ms (p99 at 4,000/s)", "mosquitto",
           lower_is_better=True, note=f"p50 {statistics.median(o['p50_ms'] for o in ours):.2f} and "
           f"{statistics.median(o['p50_ms'] for o in peer):.2f} ms")


def idle_memory(folder, identities):
    """Private memory per idle connection with a client certificate and an MQTT session."""
    def one(server, port, ca, subscribe):
        before = private_memory(server.pid)
        with device_load(port, ca, identities, IDLE, subscribe, hold=True):
            return (private_memory(server.pid) - before) / IDLE / 1024

    with Herald(folder / "idle", identities) as herald:
        ours = [one(herald, herald.port("device"), herald.ca, f"apps/{TOPIC}")]
    with Mosquitto(folder / "mosquitto3", identities) as mosquitto:
        peer = [one(mosquitto, mosquitto.port, mosquitto.ca, "d/{n}")]
    report("idle_memory", ours, peer, "KiB per connection", "mosquitto", lower_is_better=True,
           note=f"{IDLE:,} connections, one registration each")


def store(folder, identities):
    """Group commit, against the sqlite3 library doing the same batches."""
    ours, peer = [], []
    for round in range(ROUNDS):
        command = ["taskset", "-c", "0", str(RELEASE / "StoreBench"), str(folder / f"store{round}")]
        outcome = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        ours.append(outcome["ours"])
        peer.append(outcome["peer"])
    report("store", ours, peer, "notifications/s", "sqlite3")


FIGURES = {f.__name__: f for f in (gateway, gateway_connected, courier, courier_p99, idle_memory, store)}


def main():
    names = sys.argv[1:] or list(FIGURES)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        sys.exit(f"no figure {', '.join(unknown)}; there are: {', '.join(FIGURES)}")
    if (os.cpu_count() or 1) < 2:
        sys.exit("the server needs one core and the load another; this machine has one")
    folder = ROOT / ".build" / "bench"
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    folder.mkdir(parents=True)
    identities = Identities(ROOT / ".build" / "bench-identities", max(DEVICES, IDLE if "idle_memory" in names else 0))
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.release()}; {ROUNDS} rounds")
    for name in names:
        FIGURES[name](folder, identities)
    target = ROOT / "bench" / "results.json"
    target.parent.mkdir(exist_ok=True)
    previous = json.loads(target.read_text()) if target.exists() else {}
    target.write_text(json.dumps({**previous, **results}, indent=2, sort_keys=True) + "\n")


main()
