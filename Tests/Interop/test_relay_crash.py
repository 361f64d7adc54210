"""A relay that is killed again and again while it drains a queue: nothing is lost, and nothing is reported twice."""

import json
import random
import time
import urllib.request

import pytest

from provider import away_device
from relay import PostgresServer, Relay, SQLiteQueue, check, fill, sending
from service import RELAY_CRASH_CYCLES, TOPIC, eventually

CYCLES = RELAY_CRASH_CYCLES
ROWS = 40 * CYCLES


@pytest.fixture(scope="module")
def postgres():
    server = PostgresServer()
    yield server
    server.close()


def received(service, ids):
    """How often the service took each `apns-id`."""
    token = (service.data / "run" / "admin.token").read_text().strip()
    counts = {}
    for id in ids:
        request = urllib.request.Request(
            f"http://127.0.0.1:{service.doors['console']}/v1/journal?notification={id}",
            headers={"authorization": f"Bearer {token}"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            counts[id] = sum(line["state"] == "received" for line in json.load(answer))
    return counts


@pytest.mark.timeout(60 + 12 * CYCLES)
def test_kill_9_loses_nothing_and_doubles_nothing(fresh, tmp_path):
    service = fresh().start()
    token = away_device(service).token
    queue = SQLiteQueue(tmp_path / "queue.db")
    relay = Relay(queue.url, "--topic", TOPIC, *sending(service, "--log-level", "warning", "--relay-window", 100))
    relay.start().stop()
    fill(queue, token, ROWS)
    draw = random.Random(5223)
    try:
        for _ in range(CYCLES):
            before = queue.count("sent")
            relay.start()
            eventually(lambda: queue.count("sent") > before or not queue.count("queued"), timeout=30)
            time.sleep(draw.random() * 0.2)
            relay.kill()
        relay.start()
        queue.drained(timeout=120)
        assert relay.stop() == 0
    finally:
        relay.close()
    check(queue, ROWS)
    # The service has each exactly once: what was on its way when a relay died was asked for, not sent again.
    ids = {row["apns_id"] for row in queue.run("SELECT apns_id FROM push_queue")}
    counts = received(service, ids)
    assert len(ids) == ROWS and [id for id, count in counts.items() if count != 1] == []


@pytest.mark.timeout(180)
def test_two_relays_share_a_queue_and_one_is_killed(fresh, postgres):
    service = fresh().start()
    token = away_device(service).token
    queue = postgres.queue()
    options = ["--topic", TOPIC, *sending(service, "--lease", "4s", "--relay-window", 100)]
    relays = [Relay(queue.url, *options) for _ in range(2)]
    relays[0].start()
    fill(queue, token, 1500)
    relays[1].start()
    try:
        both = "SELECT count(DISTINCT owner) AS n FROM push_queue WHERE status = 'queued' AND owner IS NOT NULL"
        eventually(lambda: queue.run(both)[0]["n"] == 2, timeout=30, what="two relays at work")
        relays[0].kill()
        killed = time.time()
        pid = f":{relays[0].process.pid}:"

        def is_free():
            rows = queue.run("SELECT owner FROM push_queue WHERE status = 'queued' AND owner IS NOT NULL")
            return not [row for row in rows if pid in row["owner"]]

        eventually(is_free, timeout=30, what="the end of the dead relay's claims")
        stuck = time.time() - killed
        queue.drained(timeout=120)
    finally:
        for relay in relays:
            relay.close()
    check(queue, 1500)
    assert [line for line in relays[1].lines if "outcome=sent" in line]
    # The lease, and what the other one had in hand before it came to them.
    assert stuck < 4 + 15
