"""Runs `herald relay run` on a queue, and reads the queue like other programs."""

import concurrent.futures
import http.client
import json
import queue
import signal
import sqlite3
import subprocess
import threading
import urllib.error
import urllib.request

from service import HERALD, PATIENCE, ROOT, TOPIC, eventually, herald

PAYLOAD = json.dumps({"aps": {"alert": "hello"}})
DONE = ("sent", "refused", "expired", "failed")
#: The statements that record each change of a row's state, in order.
TRACE = {
    "sqlite": [
        "CREATE TABLE trace (id INTEGER, status TEXT)",
        "CREATE TRIGGER trace AFTER UPDATE OF status ON push_queue WHEN NEW.status <> OLD.status"
        " BEGIN INSERT INTO trace VALUES (NEW.id, NEW.status); END",
    ],
    "postgresql": [
        "CREATE TABLE trace (id bigint, status text)",
        "CREATE FUNCTION trace() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO trace VALUES (NEW.id, NEW.status); RETURN NULL; END $$",
        "CREATE TRIGGER trace AFTER UPDATE OF status ON push_queue FOR EACH ROW"
        " WHEN (NEW.status <> OLD.status) EXECUTE FUNCTION trace()",
    ],
}


class Relay:
    """One relay; `start`, `stop` and `kill` as often as a test likes."""

    def __init__(self, database, *options):
        self.database = database
        self.options = [str(option) for option in options]
        #: The words before the command.
        self.prefix = ()
        self.process = None
        self.lines = []
        self.port = None

    def start(self, *more):
        self.process = subprocess.Popen(
            [
                *self.prefix, str(HERALD), "relay", "run", "--database", self.database, "--relay-port", "0", *self.options,
                *map(str, more),
            ],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        ready = queue.Queue()

        def read(stream, is_output):
            for line in stream:
                line = line.rstrip("\n")
                self.lines.append(line)
                if is_output and line.startswith("relay "):
                    self.port = int(line.rsplit(":", 1)[1])
                if is_output and line == "ready":
                    ready.put(True)
            ready.put(False)

        self._readers = [
            threading.Thread(target=read, args=(self.process.stdout, True), daemon=True),
            threading.Thread(target=read, args=(self.process.stderr, False), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        if not ready.get(timeout=PATIENCE):
            self.process.kill()
            raise AssertionError("the relay is not ready:\n" + "\n".join(self.lines))
        return self

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE)
        for reader in self._readers:
            reader.join(timeout=PATIENCE)
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=PATIENCE)

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=PATIENCE)

    def get(self, path, token=None):
        """The status and the body of an answer of its API."""
        return self.ask("GET", path, token=token)

    def ask(self, method, path, body=None, token=None):
        """The same for any method; a body of bytes is sent as it is."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method,
            headers={"authorization": f"Bearer {token}"} if token else {},
            data=body if body is None or isinstance(body, bytes) else json.dumps(body).encode(),
        )
        try:
            answer = urllib.request.urlopen(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, answer.read().decode()

    def metric(self, name):
        """The value of a series, by its name and labels as they stand in the text."""
        _, text = self.get("/metrics")
        for line in text.splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        return None

    def command(self, name, *arguments):
        """The JSON output of a command of `herald relay`."""
        result = herald("relay", name, "--database", self.database, *arguments, "--json")
        return json.loads(result.stdout)


class SQLiteQueue:
    """The queue as a program in Python sees it, with the sqlite3 of the standard library."""

    def __init__(self, path):
        self.path = path
        self.url = f"sqlite://{path}"

    def connect(self):
        connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        connection.row_factory = sqlite3.Row
        return connection

    def run(self, sql, *arguments):
        connection = self.connect()
        try:
            return [dict(row) for row in connection.execute(sql, arguments).fetchall()]
        finally:
            connection.close()

    def many(self, sql, rows):
        connection = self.connect()
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(sql, rows)
            connection.execute("COMMIT")
        finally:
            connection.close()

    def insert(self, **columns):
        """Queues a row and returns its id."""
        columns = {"topic": TOPIC, "payload": PAYLOAD} | columns
        names = ", ".join(columns)
        places = ", ".join("?" * len(columns))
        (row,) = self.run(f"INSERT INTO push_queue ({names}) VALUES ({places}) RETURNING id", *columns.values())
        return row["id"]

    def row(self, id):
        (row,) = self.run("SELECT * FROM push_queue WHERE id = ?", id)
        return row

    def done(self, *ids, timeout=PATIENCE):
        """The rows, once all of them are done."""
        def look():
            rows = [self.row(id) for id in ids]
            return rows if all(row["status"] in DONE for row in rows) else None

        rows = eventually(look, timeout=timeout, what=f"the end of rows {ids}")
        return rows[0] if len(rows) == 1 else rows

    def count(self, status):
        (row,) = self.run("SELECT count(*) AS n FROM push_queue WHERE status = ? AND parts IS NULL", status)
        return row["n"]

    def drained(self, timeout=PATIENCE):
        eventually(lambda: self.count("queued") == 0, timeout=timeout, what="an empty queue")


def sending(service, *options):
    """The options with which a relay sends to a Herald, and asks its journal."""
    return [
        "--certificate", service.provider_certificate(), "--service", f"localhost:{service.listeners['api']}",
        "--ca", service.ca, *asking(service), *options,
    ]


def asking(service):
    scheme = "https" if service.listeners["console_tls"] else "http"
    return [
        "--console", f"{scheme}://127.0.0.1:{service.listeners['console']}",
        "--console-token", service.data / "run" / "admin.token",
    ]


def fill(queue, token, count):
    """Queues rows for a device, and traces their states."""
    for statement in TRACE["sqlite" if "sqlite" in queue.url else "postgresql"]:
        queue.run(statement)
    queue.many(
        "INSERT INTO push_queue (device_token, topic, payload) VALUES (?, ?, ?)", [(token, TOPIC, PAYLOAD)] * count
    )


def check(queue, count):
    """Asserts that every row became `sent` once."""
    assert queue.run("SELECT status, count(*) AS n FROM push_queue GROUP BY status") == [{"status": "sent", "n": count}]
    (row,) = queue.run("SELECT count(*) AS lines, count(DISTINCT id) AS rows FROM trace")
    assert row == {"lines": count, "rows": count}
    assert queue.run("SELECT id FROM push_queue WHERE time_sent IS NULL OR owner IS NOT NULL") == []


def received(service, ids):
    """The number of times that the service accepted each `apns-id`, by its journal."""
    token = (service.data / "run" / "admin.token").read_text().strip()

    def count(ids):
        connection = http.client.HTTPConnection("127.0.0.1", service.listeners["console"], timeout=PATIENCE)
        found = {}
        for id in ids:
            connection.request("GET", f"/v1/journal?id={id}", headers={"authorization": f"Bearer {token}"})
            with connection.getresponse() as answer:
                assert answer.status == 200
                found[id] = sum(line["state"] == "received" for line in json.load(answer))
        connection.close()
        return found

    ids = list(ids)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        parts = pool.map(count, [ids[start::4] for start in range(4)])
    return {id: number for part in parts for id, number in part.items()}


class PostgresQueue(SQLiteQueue):
    """The same on PostgreSQL, with psycopg."""

    @property
    def pooled(self):
        """The address of the same database through PgBouncer."""
        return self.url.replace("port=5432", "port=6432")

    def __init__(self, url):
        self.url = url

    def run(self, sql, *arguments):
        import psycopg
        from psycopg.rows import dict_row

        with psycopg.connect(self.url, autocommit=True, row_factory=dict_row) as connection:
            cursor = connection.execute(sql.replace("?", "%s"), arguments)
            return cursor.fetchall() if cursor.description else []

    def many(self, sql, rows):
        import psycopg

        with psycopg.connect(self.url) as connection:
            connection.cursor().executemany(sql.replace("?", "%s"), rows)


class PostgresServer:
    """A PostgreSQL server of its own, which ends with `close`, or with this process.

    With the argument `pooler` a PgBouncer is before it; with a port it listens there, too.
    """

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [str(ROOT / "Tests" / "postgres-server"), *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("postgresql://"), "the PostgreSQL of the tests does not start"
        self._count = 0

    def queue(self):
        """A new database on it."""
        self._count += 1
        name = f"queue{self._count}"
        PostgresQueue(self.url).run(f"CREATE DATABASE {name}")
        return PostgresQueue(self.url.replace("/herald?", f"/{name}?"))

    def restart(self):
        """Ends it as in a crash, with all of its connections, and waits until it is there again."""
        self.process.stdin.write("restart\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == "ready", "PostgreSQL did not start again"

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)
