"""Old rows of a relay's queue are deleted, and only those that are final."""

import time

import pytest

from relay import PostgresServer, Relay, SQLiteQueue, sending
from service import TOPIC, eventually, herald


@pytest.fixture(scope="module")
def postgres():
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def queue(request, tmp_path):
    """A queue with tables and no rows."""
    if request.param == "postgresql":
        queue = request.getfixturevalue("postgres").queue()
        queue.run(herald("relay", "schema", "--database", queue.url).stdout)
        return queue
    queue = SQLiteQueue(tmp_path / "queue.db")
    connection = queue.connect()
    connection.executescript(herald("relay", "schema", "--database", queue.url).stdout)
    connection.close()
    return queue


OLD, NEW = "2020-01-01 00:00:00", time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 365 * 86400))


def add(queue, status, moment=OLD, **columns):
    if status == "sent":
        columns["time_sent"] = moment
    return queue.insert(device_token="00" * 32, status=status, time_queued=moment, **columns)


def ids(queue):
    return {row["id"] for row in queue.run("SELECT id FROM push_queue")}


@pytest.fixture
def start(queue, shared):
    relays = []

    def start(*options, url=queue.url):
        relays.append(Relay(url, "--topic", TOPIC, *sending(shared), *options).start())
        return relays[-1]

    yield start
    for relay in relays:
        relay.close()


def test_only_final_rows_of_that_age_are_deleted(queue, start):
    kept = {
        add(queue, "sent", NEW), add(queue, "refused", NEW), add(queue, "queued", send_after=NEW),
        # Queued long ago, and sent just now.
        queue.insert(device_token="00" * 32, status="sent", time_queued=OLD, time_sent=NEW),
    }
    old = {add(queue, status) for status in ("sent", "refused", "expired", "failed")}
    row = add(queue, "sent", parts=2)
    parts = {add(queue, "sent", parent=row), add(queue, "refused", parent=row)}
    waiting = add(queue, "queued", parts=2, due_at=9_000_000_000_000_000)
    kept |= {waiting, add(queue, "sent", parent=waiting), add(queue, "queued", parent=waiting, send_after=NEW)}
    relay = start()
    relay.stop()
    assert ids(queue) == kept | old | {row} | parts, "without the setting nothing is deleted"
    # More than one batch.
    queue.many(
        "INSERT INTO push_queue (device_token, topic, payload, status, time_queued, time_sent) VALUES (?, ?, ?, ?, ?, ?)",
        [("00" * 32, TOPIC, "{}", "sent", OLD, OLD)] * 1100,
    )
    relay = start("--keep-sent-days", 30, "--keep-refused-days", 30)
    deleted = len(old | {row}) + 1100
    eventually(lambda: relay.metric("herald_relay_rows_deleted_total") == deleted, what="the deletion")
    assert ids(queue) == kept


def test_each_kind_has_its_own_time(queue, start):
    sent, refused = add(queue, "sent"), add(queue, "refused")
    relay = start("--keep-refused-days", 1)
    eventually(lambda: relay.metric("herald_relay_rows_deleted_total") == 1, what="the deletion")
    assert ids(queue) == {sent} and refused not in ids(queue)


@pytest.mark.parametrize("queue", ["postgresql"], indirect=True)
def test_a_relay_that_may_not_delete_says_so_and_sends_on(queue, start):
    row = add(queue, "sent")
    for sql in (
        "CREATE ROLE sender LOGIN",
        "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO sender",
    ):
        queue.run(sql)
    relay = start("--keep-sent-days", 1, url=queue.url.replace("//herald@", "//sender@"))
    eventually(lambda: any("needs the right to DELETE" in line for line in relay.lines), what="the line in the log")
    eventually(lambda: any("permission denied" in line for line in relay.lines), what="the reason")
    assert queue.done(queue.insert(device_token="00" * 32))["status"] == "refused"
    assert row in ids(queue)
