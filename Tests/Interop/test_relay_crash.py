"""A relay that is killed again and again while it drains a queue: nothing is lost, and nothing is reported twice."""

import re
import time
import urllib.request
import uuid

import pytest

from provider import away_device
from relay import PostgresServer, Relay, SQLiteQueue, check, fill, received, sending
from service import PATIENCE, TOPIC, eventually, herald

#: Rows for each kill.
SHARE = 200


@pytest.fixture(scope="module")
def postgres():
    server = PostgresServer()
    yield server
    server.close()


def taken(service):
    """The number of notifications that the service has accepted since its start."""
    with urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/metrics", timeout=PATIENCE) as answer:
        return int(re.search(r"^herald_notifications_received_total (\d+)$", answer.read().decode(), re.M)[1])


@pytest.mark.slow
def test_kill_9_loses_nothing_and_doubles_nothing(fresh, tmp_path, rounds):
    service = fresh().start()
    token = away_device(service).token
    queue = SQLiteQueue(tmp_path / "queue.db")
    relay = Relay(queue.url, "--topic", TOPIC, *sending(service, "--log-level", "warning", "--relay-window", SHARE // 2))
    relay.start().stop()
    count = SHARE * (rounds.count + 1)
    fill(queue, token, count)
    left = 0
    try:
        for cycle in rounds:
            # Somewhere within its share of the rows; wherever it is then, it dies.
            draw = rounds.random(cycle)
            goal = int((cycle - rounds.first + draw.random()) * SHARE)
            relay.start()
            eventually(lambda: queue.count("sent") >= goal, timeout=PATIENCE, what=f"{goal} rows sent")
            time.sleep(draw.random() * 0.05)  # pace: the moment of the kill
            relay.kill()
            left = queue.run("SELECT count(*) AS n FROM push_queue WHERE owner IS NOT NULL AND status = 'queued'")[0]["n"]
        relay.start()
        queue.drained(timeout=2 * PATIENCE)
        assert relay.stop() == 0
    finally:
        relay.close()
    rounds.report(rows=count, left_in_hand=left)
    check(queue, count)
    # The service has each exactly once: what was on its way when a relay died was asked for, not sent again.
    ids = sorted(row["apns_id"] for row in queue.run("SELECT apns_id FROM push_queue"))
    assert len(set(ids)) == count and taken(service) == count
    # Of very many the journal is asked for some.
    counts = received(service, ids[:: 1 + count // 5000])
    assert [id for id, count in counts.items() if count != 1] == []


@pytest.mark.slow
def test_two_relays_share_a_queue_and_one_is_killed(fresh, postgres):
    service = fresh().start()
    token = away_device(service).token
    queue = postgres.queue()
    options = ["--topic", TOPIC, *sending(service, "--lease", "4s", "--relay-window", 100)]
    relays = [Relay(queue.url, *options) for _ in range(2)]
    for relay in relays:
        relay.start()
    # Neither is done with all of them while the other is held up.
    herald("drill", "start", "latency", "--latency", "1s", "--data", service.data)
    fill(queue, token, 1500)
    try:
        both = "SELECT count(DISTINCT owner) AS n FROM push_queue WHERE status = 'queued' AND owner IS NOT NULL"
        eventually(lambda: queue.run(both)[0]["n"] == 2, timeout=PATIENCE, what="two relays at work")
        relays[0].kill()
        herald("drill", "stop", "--all", "--data", service.data)
        pid = f":{relays[0].process.pid}:"

        def is_free():
            rows = queue.run("SELECT owner FROM push_queue WHERE status = 'queued' AND owner IS NOT NULL")
            return not [row for row in rows if pid in row["owner"]]

        # After the lease, and what the other one had in hand before it came to them: nothing else frees them.
        eventually(is_free, what="the end of the dead relay's claims")
        queue.drained(timeout=2 * PATIENCE)
    finally:
        for relay in relays:
            relay.close()
    check(queue, 1500)
    eventually(lambda: [line for line in relays[1].lines if "outcome=sent" in line], what="the log")


class Mortal:
    """A relay that gives up rows in doubt, and whose predecessor died."""

    def __init__(self, service, path, *options):
        self.queue = SQLiteQueue(path)
        self.relay = Relay(self.queue.url, "--topic", TOPIC, *sending(service), "--in-doubt", "give-up", *options).start()

    def send(self, token):
        row = self.queue.done(self.queue.insert(device_token=token))
        assert row["status"] == "sent"
        return row["apns_id"]

    def inherit(self, token, apns_id):
        """The state and the reason of a row that the predecessor had claimed."""
        self.relay.stop()
        id = self.queue.insert(device_token=token, apns_id=apns_id, owner="dead", due_at=1)
        self.relay.start()
        row = self.queue.done(id)
        return row["status"], row["reason"]


def test_a_row_whose_lines_the_journal_has_deleted_is_in_doubt(fresh, tmp_path):
    service = fresh("--clock", "adjustable", "--journal-days", "1").start()
    token, other = away_device(service).token, away_device(service).token
    binary = ["--interface", "binary", "--service", f"localhost:{service.listeners['binary']}"]
    mortals = [Mortal(service, tmp_path / "http2.db"), Mortal(service, tmp_path / "binary.db", *binary)]
    try:
        ids = [mortal.send(token) for mortal in mortals]
        assert [mortal.inherit(token, id) for mortal, id in zip(mortals, ids)] == [("sent", None)] * 2
        # It never came.
        never = [str(uuid.uuid4()) for _ in mortals]
        assert [mortal.inherit(other, id) for mortal, id in zip(mortals, never)] == [("sent", None)] * 2
        assert taken(service) == 4
        herald("clock", "advance", "2d", "--data", service.data)
        # The newest lines stay, so there must be newer ones.
        mortals[0].send(other)
        eventually(lambda: complete_since(service), what="the end of the first lines")
        assert [mortal.inherit(token, id) for mortal, id in zip(mortals, ids)] == [("failed", "Uncertain")] * 2
        assert taken(service) == 5
    finally:
        for mortal in mortals:
            mortal.relay.close()


def complete_since(service):
    """The time since which the journal has deleted no line."""
    token = (service.data / "run" / "admin.token").read_text().strip()
    request = urllib.request.Request(
        f"http://127.0.0.1:{service.listeners['console']}/v1/journal?topic={TOPIC}",
        headers={"authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.headers["herald-complete-since"]
