"""The figures of the store."""

import json
import os
import shutil
import subprocess

from loads import DeviceLoad
from machine import ON_SERVER_CORE, RELEASE, WORK
from report import median
from servers import Mosquitto, slow_sync

# Clients that are away while mosquitto queues for them.
AWAY = 1000


def store(settings, report):
    """Group commit, against the sqlite3 library doing the same batches; also with a slower disk. And against mosquitto
    queueing for clients that are away, which is not durable."""
    queued = []
    for delay in (0, 1, 5):
        outcomes = []
        for place in range(settings.rounds):
            outcomes.append(measure_store(WORK / f"store-{delay}-{place}", delay))
            if delay == 0:
                queued.append(_queue(WORK / f"mosquitto-queue-{place}", settings))
        report.figure(f"store_sync_{delay}ms" if delay else "store", [o["ours"] for o in outcomes],
                      [o["peer"] for o in outcomes], "notifications/s", "sqlite3",
                      note=f"{median(outcomes, 'ours_cpu_us'):.1f} and {median(outcomes, 'peer_cpu_us'):.1f} us CPU each, "
                      f"{median(outcomes, 'batch'):.0f} to a commit, from put to report p50 {median(outcomes, 'p50_ms'):.1f}"
                      f" and p99 {median(outcomes, 'p99_ms'):.1f} ms")
        if delay == 0:
            report.figure("store_queue", [o["ours"] for o in outcomes], [o["rate"] for o in queued], "notifications/s",
                          "mosquitto", note=f"mosquitto queues in memory, by QoS 1 publish: "
                          f"{median(queued, 'cpu_us'):.1f} us CPU each")


def measure_store(folder, delay=0, release=RELEASE):
    command = [*ON_SERVER_CORE, str(release / "StoreBench"), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **slow_sync(delay)})
    shutil.rmtree(folder, ignore_errors=True)
    if run.returncode:
        raise RuntimeError(f"StoreBench failed: {(run.stderr or run.stdout).strip()[-300:]}")
    outcome = json.loads(run.stdout.splitlines()[-1])
    # The loader only warns of a library that it cannot preload.
    if outcome["p50_ms"] < delay:
        raise RuntimeError(f"StoreBench stored within {outcome['p50_ms']} ms, and a sync was to take {delay} ms")
    return outcome


def _queue(folder, settings):
    with Mosquitto(folder, settings.identities) as mosquitto:
        with DeviceLoad(mosquitto.port, mosquitto.ca, settings.identities, AWAY, "d/{n}", keep_session=True):
            pass
        with DeviceLoad(mosquitto.port, mosquitto.ca, settings.identities, 0, "", publish="d/{n}", publishers=4,
                        topics=AWAY) as publishers:
            publishers.ask("publish 0")
            outcome = publishers.measure(mosquitto, 2, counted="published")
            publishers.ask("rest")
            return outcome
