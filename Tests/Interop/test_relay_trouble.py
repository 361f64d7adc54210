"""A relay during a wave of dead tokens, with rows that expire in doubt, and after a restart of the service."""

import concurrent.futures
import json
import os
import socket
import time

import pytest

from parties import dead_app
from provider import away_device
from relay import PostgresServer, Relay, check, fill, received, sending
from service import PATIENCE, TOPIC, eventually, free_port, herald

#: The number of dead tokens that the breaker allows in ten minutes.
ALLOWANCE = 20


def drill(service, *words):
    herald("drill", "start", *words, "--for", "10m", "--data", service.data)


def states(service, id):
    return [line["state"] for line in service.journal(id)]


@pytest.mark.slow
def test_a_wave_of_dead_tokens_opens_the_breaker(fresh, queue, relay):
    service = fresh().start()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        tokens = [device.token for device in pool.map(lambda _: away_device(service), range(ALLOWANCE + 5))]
    relay.options = ["--topic", TOPIC, *map(str, sending(service))]
    relay.start()
    drill(service, "refuse", "--reason", "Unregistered")
    rows = queue.done(*[queue.insert(device_token=token) for token in tokens])
    assert {(row["status"], row["reason"]) for row in rows} == {("refused", "Unregistered")}
    # Tokens within the allowance are marked. Later ones are only recorded.
    held = len(tokens) - ALLOWANCE
    eventually(lambda: relay.metric("herald_relay_held_tokens_total") == held)
    eventually(lambda: relay.metric("herald_relay_dead_tokens_total") == ALLOWANCE)
    eventually(lambda: relay.metric("herald_relay_breakers_open") == 1)
    status = relay.command("status")
    assert (status["dead_devices"], status["held_devices"]) == (ALLOWANCE, held)
    code, body = relay.get("/health")
    (problem,) = json.loads(body)["problems"]
    assert code == 503 and f"of {TOPIC} (production) were reported dead" in problem and "herald relay revive" in problem
    (line,) = eventually(lambda: [line for line in relay.lines if "too many dead tokens: marking is suspended" in line])
    assert " critical " in line and f"of {TOPIC} (production)" in line
    # The tokens that were held are still sent to.
    herald("drill", "stop", "--all", "--data", service.data)
    kept = queue.run("SELECT device_token FROM devices WHERE held_at IS NOT NULL")[0]["device_token"]
    assert queue.done(queue.insert(device_token=kept))["status"] == "sent"
    # The breaker stays open after a restart of the relay: later dead tokens are held too.
    assert status["breakers"] == [{"app": f"{TOPIC} (production)", "dead_tokens": 21, "answers": 21} | status["breakers"][0]]
    assert relay.stop() == 0
    relay.start()
    eventually(lambda: relay.metric("herald_relay_breakers_open") == 1)
    assert relay.get("/health")[0] == 503
    drill(service, "refuse", "--reason", "Unregistered")
    assert queue.done(queue.insert(device_token=kept))["reason"] == "Unregistered"
    herald("drill", "stop", "--all", "--data", service.data)
    assert relay.command("status")["dead_devices"] == ALLOWANCE
    # The cause is mended: all as before, without another start.
    answer = relay.command("revive", "--topic", TOPIC, "--since", "1h")
    assert answer == {"changed": len(tokens), "breakers": [f"{TOPIC} (production)"]}
    eventually(lambda: relay.get("/health")[0] == 200)
    eventually(lambda: relay.metric("herald_relay_breakers_open") == 0)
    assert relay.command("retry", "--reason", "Unregistered") == {"changed": len(tokens) + 1}
    queue.drained()
    assert queue.count("sent") == len(tokens) + 2
    status = relay.command("status")
    assert (status["dead_devices"], status["held_devices"]) == (0, 0)


@pytest.mark.slow
def test_rows_wait_while_the_journal_cannot_be_queried(fresh, queue, relay):
    service = fresh().start()
    token = away_device(service).token
    right = ["--topic", TOPIC, *map(str, sending(service))]
    wrong = list(right)
    with socket.socket() as nobody:
        # Bound without listening: connections are refused.
        nobody.bind(("127.0.0.1", 0))
        wrong[wrong.index("--console") + 1] = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        relay.options = wrong
        relay.start()
        # Said before any row depends on it.
        eventually(lambda: [line for line in relay.lines if "the journal is unavailable" in line])
        eventually(lambda: json.loads(relay.get("/health")[1])["notes"])
        (note,) = json.loads(relay.get("/health")[1])["notes"]
        assert "the journal of localhost" in note and "is unavailable" in note
        assert relay.get("/health")[0] == 200
        drill(service, "silence", "--accepted")
        id = queue.insert(device_token=token)
        other = queue.insert(device_token=token, give_up_at=int(time.time()) + 3600)
        eventually(lambda: all(queue.row(row)["owner"] for row in (id, other)))
        eventually(lambda: all("answer withheld" in states(service, queue.row(row)["apns_id"]) for row in (id, other)))
        relay.kill()
        herald("drill", "stop", "--all", "--data", service.data)
        relay.start()
        # It was asked for, and is asked for again; others are sent meanwhile.
        eventually(lambda: queue.row(id)["uncertain"] > 2, timeout=PATIENCE)
        row = queue.row(id)
        assert (row["status"], row["reason"], row["attempts"]) == ("queued", "Uncertain", 0)
        assert queue.done(queue.insert(device_token=token))["status"] == "sent"
        # But for the moments at which one is asked for.
        eventually(lambda: relay.command("status")["waiting"] == {"Uncertain": 2}, what="two rows that wait")
        # So often that it was once sent again by then.
        queue.run("UPDATE push_queue SET uncertain = 20, due_at = 0 WHERE id = ?", id)
        eventually(lambda: queue.row(id)["uncertain"] == 21)
        # At the end of its time nobody knows.
        queue.run("UPDATE push_queue SET uncertain = 20, due_at = 0, give_up_at = ? WHERE id = ?", int(time.time()) - 1, other)
        row = queue.done(other)
        assert (row["status"], row["reason"], row["time_sent"]) == ("expired", "Uncertain", None)
        assert relay.stop() == 0
    relay.options = right
    relay.start()
    queue.run("UPDATE push_queue SET due_at = 0 WHERE id = ?", id)
    row = queue.done(id)
    assert (row["status"], row["reason"]) == ("sent", None)
    assert states(service, row["apns_id"]).count("received") == 1


@pytest.mark.slow
def test_a_database_failure_in_mid_run_loses_nothing(fresh):
    service = fresh().start()
    token = away_device(service).token
    server = PostgresServer()
    relays = []
    try:
        queue = server.queue()
        options = ["--topic", TOPIC, *sending(service, "--lease", "5s", "--relay-window", 50)]
        relays = [Relay(queue.url, *options).start() for _ in range(2)]
        fill(queue, token, 2000)
        for goal in (200, 700, 1200):
            eventually(lambda: queue.count("sent") >= goal, timeout=PATIENCE, what=f"{goal} rows sent")
            server.restart()
        # Rows whose claim or outcome was lost are free again after the lease, and are looked up.
        queue.drained(timeout=2 * PATIENCE)
        check(queue, 2000)
        ids = {row["apns_id"] for row in queue.run("SELECT apns_id FROM push_queue")}
        assert len(ids) == 2000 and {count for count in received(service, ids).values()} == {1}
        eventually(
            lambda: all([line for line in relay.lines if "the queue's database works again" in line] for relay in relays),
            what="the log",
        )
        # They hear of new rows as before.
        assert queue.done(queue.insert(device_token=token))["status"] == "sent"
        assert [relay.stop() for relay in relays] == [0, 0]
    finally:
        for relay in relays:
            relay.close()
        server.close()


@pytest.mark.slow
def test_an_expired_row_in_doubt_is_looked_up_before_it_expires(fresh, queue, relay):
    service = fresh().start()
    token = away_device(service).token
    lost = away_device(service).token
    relay.options = ["--topic", TOPIC, *map(str, sending(service))]
    relay.start()
    drill(service, "silence", "--accepted", "--token", token)
    drill(service, "silence", "--token", lost)
    # Time for the relay to take them.
    moment = int(time.time()) + 3600
    ids = [queue.insert(device_token=token, give_up_at=moment), queue.insert(device_token=lost, give_up_at=moment)]
    # The relay dies while it waits for the answers, and comes back after the rows' time.
    rows = eventually(lambda: (rows := queue.run("SELECT id, apns_id FROM push_queue ORDER BY id"))[1]["apns_id"] and rows)
    eventually(lambda: "stored" in states(service, rows[0]["apns_id"]) and "lost" in states(service, rows[1]["apns_id"]))
    relay.kill()
    queue.run("UPDATE push_queue SET give_up_at = ?", int(time.time()) - 1)
    relay.start()
    taken, never = queue.done(*ids)
    assert (taken["status"], taken["reason"]) == ("sent", None) and taken["time_sent"]
    assert (never["status"], never["reason"], never["time_sent"]) == ("expired", "GiveUpAt", None)
    assert states(service, taken["apns_id"]).count("received") == 1


@pytest.mark.slow
def test_an_expired_row_in_doubt_without_a_journal_has_an_unknown_outcome(fresh, queue, relay):
    service = fresh().start()
    token = away_device(service).token
    options = [str(option) for option in sending(service)]
    relay.options = ["--topic", TOPIC, *options[: options.index("--console")]]
    relay.start()
    drill(service, "silence", "--token", token)
    # Time for the relay to take it.
    id = queue.insert(device_token=token, give_up_at=int(time.time()) + 3600)
    eventually(lambda: queue.row(id)["owner"])
    relay.kill()
    queue.run("UPDATE push_queue SET give_up_at = ?", int(time.time()) - 1)
    relay.start()
    row = queue.done(id)
    assert (row["status"], row["reason"]) == ("expired", "Uncertain")


def test_a_restarted_service_is_queried_with_its_new_token(fresh, queue, relay):
    service = fresh("--api-port", str(free_port()), "--console-port", str(free_port())).start()
    token = away_device(service).token
    relay.options = ["--topic", TOPIC, *map(str, sending(service))]
    relay.start()
    drill(service, "silence", "--accepted")
    ids = [queue.insert(device_token=token) for _ in range(10)]
    rows = eventually(
        lambda: (rows := queue.run("SELECT apns_id FROM push_queue WHERE apns_id IS NOT NULL")) and len(rows) == 10 and rows
    )
    eventually(lambda: all("answer withheld" in states(service, row["apns_id"]) for row in rows))
    before = (service.data / "run" / "admin.token").read_text()
    service.kill()
    service.start()
    assert (service.data / "run" / "admin.token").read_text() != before
    done = queue.done(*ids, timeout=PATIENCE)
    assert {row["status"] for row in done} == {"sent"}
    eventually(lambda: relay.metric("herald_relay_resolved_total") == 10)
    for row in done:
        assert states(service, row["apns_id"]).count("received") == 1


def test_a_row_that_cannot_be_updated_delays_no_other(fresh, queue, relay):
    service = fresh().start()
    token = away_device(service).token
    relay.options = ["--topic", TOPIC, *map(str, sending(service, "--lease", "2s"))]
    relay.start()
    queue.run(
        "CREATE TRIGGER kept BEFORE UPDATE OF status ON push_queue WHEN NEW.collapse_id = 'kept'"
        " BEGIN SELECT raise(ABORT, 'this row stays'); END"
    )
    queue.many(
        "INSERT INTO push_queue (device_token, topic, payload, collapse_id) VALUES (?, ?, '{\"aps\":{}}', ?)",
        [(token, TOPIC, name) for name in ["a", "kept", "b"]],
    )
    ids = [row["id"] for row in queue.run("SELECT id FROM push_queue WHERE collapse_id <> 'kept'")]
    assert {row["status"] for row in queue.done(*ids)} == {"sent"}
    assert queue.count("queued") == 1
    (line,) = eventually(lambda: [line for line in relay.lines if "cannot write the outcome of a row" in line][:1])
    assert "this row stays" in line
    # Once it may be written, it is, and it was not sent twice.
    queue.run("DROP TRIGGER kept")
    queue.drained()
    row = queue.run("SELECT * FROM push_queue WHERE collapse_id = 'kept'")[0]
    assert row["status"] == "sent"
    assert states(service, row["apns_id"]).count("received") == 1


def test_a_window_of_one_works(fresh, queue, relay):
    service = fresh().start()
    token = away_device(service).token
    slow = away_device(service).token
    relay.options = ["--topic", TOPIC, *map(str, sending(service, "--relay-window", 1))]
    relay.start()
    ids = [queue.insert(device_token=token) for _ in range(20)]
    assert {row["status"] for row in queue.done(*ids)} == {"sent"}
    drill(service, "latency", "--latency", "3s", "--token", slow)
    ids = [queue.insert(device_token=slow), queue.insert(device_token=token)]
    before, began = processor_seconds(relay.process.pid), time.monotonic()
    assert {row["status"] for row in queue.done(*ids)} == {"sent"}
    # A relay that waits in a loop takes all the time there is.
    assert processor_seconds(relay.process.pid) - before < max(1.5, (time.monotonic() - began) / 2)


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    "fault, mend, words",
    [
        (
            "ALTER TABLE devices RENAME TO hidden", "ALTER TABLE hidden RENAME TO devices",
            "the feedback list stays unread, as the database does not work",
        ),
        (
            "CREATE TRIGGER keep BEFORE INSERT ON devices BEGIN SELECT RAISE(ABORT, 'kept'); END", "DROP TRIGGER keep",
            "cannot mark dead tokens",
        ),
    ],
    ids=["unread", "unmarked"],
)
def test_a_feedback_list_outlasts_a_failure_of_the_database(fresh, queue, relay, fault, mend, words):
    service = fresh().start()
    gone = away_device(service)
    relay.options = [
        "--topic", TOPIC, *map(str, sending(service)), "--feedback", f"localhost:{service.listeners['feedback']}",
        "--feedback-every", "1s",
    ]
    relay.start()
    queue.run(fault)
    dead_app(gone)
    eventually(lambda: [line for line in relay.lines if words in line])
    queue.run(mend)
    (dead,) = eventually(lambda: queue.run("SELECT device_token FROM devices WHERE dead_at IS NOT NULL"))
    assert dead["device_token"] == gone.token
