"""The relay on PostgreSQL as it is run: behind PgBouncer in transaction mode, and with a failover behind one address."""

import json
import threading

import psycopg
import pytest

from cutting_proxy import CuttingProxy
from provider import away_device
from relay import PostgresQueue, PostgresServer, Relay, check, fill, sending
from service import PATIENCE, TOPIC, eventually, free_port, herald


@pytest.fixture
def relays():
    relays = []
    yield relays
    for relay in relays:
        relay.close()


def application(address, stop):
    """Leaves settings and statements in the sessions of a pooler, as other clients do, in a thread."""
    with psycopg.connect(address, autocommit=True, prepare_threshold=None) as connection:
        while not stop.is_set():
            with connection.transaction():
                connection.execute("DEALLOCATE ALL")
                connection.execute("PREPARE s0 AS SELECT 1")
                connection.execute("PREPARE s1 AS SELECT 2")
                connection.execute("SET DateStyle = 'German'")
                connection.execute("SET TimeZone = 'Pacific/Apia'")
                connection.execute("SET search_path = pg_catalog")
                connection.execute("SET ROLE pg_read_all_data")
            stop.wait(0.01)


@pytest.mark.slow
def test_two_relays_share_a_pooler_with_others(shared, relays):
    server = PostgresServer("pooler")
    stop = threading.Event()
    threads = []
    try:
        queue = server.queue()
        token = away_device(shared).token
        options = ["--topic", TOPIC, *sending(shared)]
        relays += [Relay(queue.pooled, *options).start() for _ in range(2)]
        threads = [threading.Thread(target=application, args=(queue.pooled, stop)) for _ in range(2)]
        for thread in threads:
            thread.start()
        # Through the server itself: the application's sessions have another search path.
        fill(queue, token, 300)
        queue.drained()
        check(queue, 300)
        owners = queue.run("SELECT count(DISTINCT apns_id) AS n FROM push_queue")
        assert owners == [{"n": 300}]
        stop.set()
        for thread in threads:
            thread.join(timeout=PATIENCE)
        for relay in relays:
            said = lambda relay=relay: [line for line in relay.lines if "queried every second" in line]
            (line,) = eventually(said, what="the line")
            assert "pooler" in line
            assert not [line for line in relay.lines if "does not work" in line], relay.lines
            assert json.loads(relay.get("/health")[1])["status"] == "ready"
        assert queue.done(queue.insert(device_token=token))["status"] == "sent"
        # Nothing of theirs is left in a session.
        left = queue.run(
            "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND database IN (SELECT oid FROM pg_database"
            " WHERE datname = current_database())"
        )
        assert left == [{"n": 0}]
        with psycopg.connect(queue.pooled) as connection:
            for name, value in (("statement_timeout", "0"), ("lock_timeout", "0")):
                assert connection.execute(f"SHOW {name}").fetchone() == (value,)
            assert connection.execute("SELECT * FROM pg_listening_channels()").fetchall() == []
        assert [relay.stop() for relay in relays] == [0, 0]
    finally:
        stop.set()
        server.close()


@pytest.mark.slow
def test_rows_go_out_after_a_failover_behind_one_address(shared, relays):
    """The writer becomes read-only and keeps its connections; new ones reach the new writer."""
    ports = [free_port(), free_port()]
    servers = [PostgresServer(port) for port in ports]
    now = [0]
    proxy = CuttingProxy("127.0.0.1", lambda: ports[now[0]])
    try:
        old, new = (PostgresQueue(server.url) for server in servers)
        token = away_device(shared).token
        address = f"postgresql://herald@127.0.0.1:{proxy.port}/herald"
        new.run(herald("relay", "schema", "--database", address).stdout)
        relay = Relay(address, "--topic", TOPIC, *sending(shared)).start()
        relays.append(relay)
        assert old.done(old.insert(device_token=token))["status"] == "sent"
        # It has a reason to write within seconds, else it asks every five.
        old.run("INSERT INTO push_queue (device_token, topic, payload, send_after) VALUES ('ab', 'a.b', '{}', now() + interval '1s')")
        now[0] = 1
        old.run("ALTER SYSTEM SET default_transaction_read_only = on")
        old.run("SELECT pg_reload_conf()")
        assert new.done(new.insert(device_token=token))["status"] == "sent"
        eventually(lambda: relay.get("/health")[0] == 200, what="a relay that is ready")
        # And it hears of new rows there.
        assert new.done(new.insert(device_token=token))["status"] == "sent"
        # Of several hosts, the writer, unless the address says otherwise.
        hosts = f"postgresql://herald@127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/herald"
        assert Relay(hosts).command("status")["rows"] == {"sent": 2}
        assert Relay(hosts + "?target_session_attrs=any").command("status")["rows"] == {"queued": 1, "sent": 1}
        assert relay.stop() == 0
    finally:
        proxy.close()
        for server in servers:
            server.close()
