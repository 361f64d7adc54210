"""An adapter of `herald exam` for the program curl: the notifications that wait are one run of curl, four at a time.

It opens up to four connections for them: curl does not always wait for the first one.

    herald exam --adapter 'python3 curl_adapter.py' --name "$(curl --version | head -1)"
"""

import json
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import jwt

#: Exit codes of curl for what fails before the request: the name, the connection, TLS, trust.
UNSENT = (6, 7, 35, 60)


def transfer(place, authorization, order, folder):
    """The lines of curl's configuration for one notification."""
    file = folder / str(order["id"])
    file.with_suffix(".json").write_text(json.dumps(order["payload"], ensure_ascii=False, separators=(",", ":")))
    fields = {"topic": place["topic"], "id": uuid.uuid4()}
    fields |= {name: order[name] for name in ("push_type", "priority", "expiration", "collapse_id") if name in order}
    return "\n".join([
        f'url = "https://{place["host"]}:{place["port"]}/3/device/{order["token"]}"', "http2", "max-time = 5",
        "retry = 3", "retry-max-time = 15", "retry-connrefused",
        f'cacert = "{place["ca"]}"', f'data-binary = "@{file}.json"', f'output = "{file}.answer"',
        f'header = "authorization: {authorization}"',
        *(f'header = "apns-{name.replace("_", "-")}: {value}"' for name, value in fields.items()),
        rf'write-out = "{order["id"]} %{{exitcode}} %{{http_code}}\n"',
    ])


def run(place, authorization, orders, folder):
    command = ["curl", "--no-progress-meter", "--parallel", "--parallel-max", "4", "--config", "-"]
    curl = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    curl.stdin.write("\nnext\n".join(transfer(place, authorization, order, folder) for order in orders))
    curl.stdin.close()
    for line in curl.stdout:
        id, code, status = map(int, line.split())
        outcome = "accepted" if status == 200 else "refused" if status else "failed" if code in UNSENT else "unknown"
        body = (folder / f"{id}.answer").read_text() if outcome == "refused" else ""
        reason = json.loads(body)["reason"] if body.startswith("{") else f"curl: exit code {code}" if code else None
        print(json.dumps({"id": id, "outcome": outcome, "status": status or None, "reason": reason}), flush=True)


def read(waiting):
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "close":
            break
        waiting.put(order)


def main(folder):
    place, waiting = json.loads(sys.stdin.readline()), queue.SimpleQueue()
    token, key = {"iss": place["team"], "iat": int(time.time())}, pathlib.Path(place["key"]).read_text()
    authorization = "bearer " + jwt.encode(token, key, algorithm="ES256", headers={"kid": place["key_id"]})
    reader = threading.Thread(target=read, args=(waiting,))
    reader.start()
    while reader.is_alive() or not waiting.empty():
        time.sleep(0.05)
        if orders := [waiting.get() for _ in range(waiting.qsize())]:
            run(place, authorization, orders, folder)


with tempfile.TemporaryDirectory() as folder:
    main(pathlib.Path(folder))
