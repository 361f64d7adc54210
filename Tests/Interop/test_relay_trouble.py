"""A relay when tokens die in a wave, when a row's time is over before its answer is known, when the service starts anew."""

import concurrent.futures
import json
import os
import time

import pytest

from provider import away_device
from relay import Relay, SQLiteQueue, sending
from service import TOPIC, eventually, herald

#: So many deaths are let through in ten minutes.
ALLOWANCE = 20


def drill(service, *words):
    herald("drill", "start", *words, "--data", service.data)


def states(service, id):
    return [line["state"] for line in service.journal(id)]


@pytest.fixture
def queue(tmp_path):
    return SQLiteQueue(tmp_path / "queue.db")


@pytest.fixture
def relay(queue):
    relay = Relay(queue.url)
    yield relay
    relay.close()


def test_a_wave_of_deaths_puts_the_brake_on(fresh, queue, relay):
    service = fresh().start()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        tokens = [device.token for device in pool.map(lambda _: away_device(service), range(ALLOWANCE + 5))]
    relay.options = ["--topic", TOPIC, *map(str, sending(service))]
    relay.start()
    drill(service, "refuse", "--reason", "Unregistered")
    rows = queue.done(*[queue.insert(device_token=token) for token in tokens])
    assert {(row["status"], row["reason"]) for row in rows} == {("refused", "Unregistered")}
    # Those within the allowance are marked; what came after it is noted, and no more.
    held = len(tokens) - ALLOWANCE
    eventually(lambda: relay.metric("herald_relay_held_tokens_total") == held)
    assert relay.metric("herald_relay_dead_tokens_total") == ALLOWANCE
    assert relay.metric("herald_relay_brakes") == 1
    status = relay.command("status")
    assert (status["dead_devices"], status["held_devices"]) == (ALLOWANCE, held)
    code, body = relay.get("/health")
    (problem,) = json.loads(body)["problems"]
    assert code == 503 and f"of {TOPIC} (production) came back dead" in problem and "herald relay revive" in problem
    (line,) = [line for line in relay.lines if "tokens are no more marked dead" in line]
    assert " critical " in line and f"of {TOPIC} (production)" in line
    # The tokens that were held are still sent to.
    herald("drill", "stop", "--all", "--data", service.data)
    kept = queue.run("SELECT device_token FROM devices WHERE held_at IS NOT NULL")[0]["device_token"]
    assert queue.done(queue.insert(device_token=kept))["status"] == "sent"
    # The cause is mended: all as before.
    assert relay.command("revive", "--topic", TOPIC, "--since", "1h") == {"changed": len(tokens)}
    assert relay.stop() == 0
    relay.start()
    eventually(lambda: relay.get("/health")[0] == 200)
    assert relay.metric("herald_relay_brakes") == 0
    assert relay.command("retry", "--reason", "Unregistered") == {"changed": len(tokens)}
    queue.drained()
    assert queue.count("sent") == len(tokens) + 1
    status = relay.command("status")
    assert (status["dead_devices"], status["held_devices"]) == (0, 0)


@pytest.mark.timeout(120)
def test_a_row_whose_time_is_over_is_asked_for_before_it_expires(fresh, queue, relay):
    service = fresh().start()
    token = away_device(service).token
    lost = away_device(service).token
    relay.options = ["--topic", TOPIC, *map(str, sending(service))]
    relay.start()
    drill(service, "silence", "--accepted", "--token", token)
    drill(service, "silence", "--token", lost)
    moment = int(time.time()) + 5
    ids = [queue.insert(device_token=token, give_up_at=moment), queue.insert(device_token=lost, give_up_at=moment)]
    # The relay dies while it waits for the answers, and comes back after the rows' time.
    rows = eventually(lambda: (rows := queue.run("SELECT id, apns_id FROM push_queue ORDER BY id"))[1]["apns_id"] and rows)
    eventually(lambda: "stored" in states(service, rows[0]["apns_id"]) and "lost" in states(service, rows[1]["apns_id"]))
    relay.kill()
    eventually(lambda: time.time() > moment + 1)
    relay.start()
    taken, never = queue.done(*ids)
    assert (taken["status"], taken["reason"]) == ("sent", None) and taken["time_sent"]
    assert (never["status"], never["reason"], never["time_sent"]) == ("expired", "GiveUpAt", None)
    assert states(service, taken["apns_id"]).count("received") == 1


def test_without_a_journal_such_a_row_says_that_nobody_knows(fresh, queue, relay):
    service = fresh().start()
    token = away_device(service).token
    options = [str(option) for option in sending(service)]
    relay.options = ["--topic", TOPIC, *options[: options.index("--console")]]
    relay.start()
    drill(service, "silence", "--token", token)
    moment = int(time.time()) + 3
    id = queue.insert(device_token=token, give_up_at=moment)
    eventually(lambda: queue.row(id)["owner"])
    relay.kill()
    eventually(lambda: time.time() > moment + 1)
    relay.start()
    row = queue.done(id)
    assert (row["status"], row["reason"]) == ("expired", "Uncertain")


@pytest.mark.timeout(120)
def test_a_service_that_started_anew_is_asked_with_its_new_token(fresh, queue, relay):
    service = fresh().start()
    token = away_device(service).token
    relay.options = ["--topic", TOPIC, *map(str, sending(service))]
    relay.start()
    drill(service, "silence", "--accepted")
    ids = [queue.insert(device_token=token) for _ in range(10)]
    rows = eventually(
        lambda: (rows := queue.run("SELECT apns_id FROM push_queue WHERE apns_id IS NOT NULL")) and len(rows) == 10 and rows
    )
    eventually(lambda: all("answer withheld" in states(service, row["apns_id"]) for row in rows))
    ports = ["--api-port", str(service.doors["api"]), "--console-port", str(service.doors["console"])]
    before = (service.data / "run" / "admin.token").read_text()
    service.kill()
    service.start(*ports)
    assert (service.data / "run" / "admin.token").read_text() != before
    done = queue.done(*ids, timeout=60)
    assert {row["status"] for row in done} == {"sent"}
    assert relay.metric("herald_relay_resolved_total") == 10
    for row in done:
        assert states(service, row["apns_id"]).count("received") == 1


def test_a_row_that_the_database_keeps_as_it_is_holds_up_no_other(fresh, queue, relay):
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
    (line,) = eventually(lambda: [line for line in relay.lines if "does not take what became of a row" in line][:1])
    assert "this row stays" in line
    # Once it may be written, it is, and it was not sent twice.
    queue.run("DROP TRIGGER kept")
    queue.drained()
    row = queue.run("SELECT * FROM push_queue WHERE collapse_id = 'kept'")[0]
    assert row["status"] == "sent"
    assert states(service, row["apns_id"]).count("received") == 1


def test_a_window_of_one_sends_and_rests(fresh, queue, relay):
    service = fresh().start()
    token = away_device(service).token
    slow = away_device(service).token
    relay.options = ["--topic", TOPIC, *map(str, sending(service, "--relay-window", 1))]
    relay.start()
    ids = [queue.insert(device_token=token) for _ in range(20)]
    assert {row["status"] for row in queue.done(*ids)} == {"sent"}
    drill(service, "latency", "--latency", "3s", "--token", slow)
    ids = [queue.insert(device_token=slow), queue.insert(device_token=token)]
    before = processor_seconds(relay.process.pid)
    assert {row["status"] for row in queue.done(*ids)} == {"sent"}
    assert processor_seconds(relay.process.pid) - before < 1.5


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
