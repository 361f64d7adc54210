"""An adapter of `herald exam` for `herald relay`: it puts rows into a queue of its own, and reads what became of each.

    herald exam --adapter 'python3 relay_adapter.py herald' --name 'herald relay'
"""

import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

#: Seconds for which the relay tries a row; without `give_up_at` it would be a day.
PATIENCE = 20
OUTCOMES = {"sent": "accepted", "refused": "refused", "expired": "failed", "failed": "failed"}


def start(place, database):
    command = [
        sys.argv[1], "relay", "run", "--database", f"sqlite://{database}", "--relay-port", "0",
        "--topic", place["topic"], "--key", place["key"], "--key-id", place["key_id"], "--team", place["team"],
        "--service", f"{place['host']}:{place['port']}", "--ca", place["ca"], "--log-level", "error",
    ]
    relay = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    while relay.stdout.readline() not in ("ready\n", ""):
        pass
    return relay


def connect(database):
    """A connection for one thread: with one for two, SQLite would refuse to wait for a lock."""
    return sqlite3.connect(database, timeout=60, isolation_level=None)


def insert(database, waiting):
    rows = connect(database)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "close":
            break
        row = {name: order[name] for name in ("id", "push_type", "priority", "expiration", "collapse_id") if name in order}
        payload = json.dumps(order["payload"], ensure_ascii=False, separators=(",", ":"))
        row |= {"device_token": order["token"], "payload": payload, "give_up_at": int(time.time()) + PATIENCE}
        waiting.add(order["id"])
        rows.execute(f"INSERT INTO push_queue ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])


def main(database):
    relay = start(json.loads(sys.stdin.readline()), database)
    rows, waiting = connect(database), set()
    inserter = threading.Thread(target=insert, args=(database, waiting))
    inserter.start()
    while inserter.is_alive() or waiting:
        time.sleep(0.05)
        for id, status, reason in rows.execute("SELECT id, status, reason FROM push_queue WHERE status <> 'queued'").fetchall():
            if id in waiting:
                waiting.remove(id)
                outcome = "unknown" if reason == "Uncertain" else OUTCOMES[status]
                print(json.dumps({"id": id, "outcome": outcome, "reason": reason}), flush=True)
    relay.terminate()
    relay.wait()


with tempfile.TemporaryDirectory() as folder:
    main(f"{folder}/queue.db")
