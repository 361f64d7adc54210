"""One message to ten thousand connected devices: Herald's broadcast, beside mosquitto's PUBLISH to as many subscribers.

    .build/venv/bin/python Benchmarks/broadcast_figures.py        # with `herald` and `DeviceLoad` built for release

Each server is on one core and its load on the other; the rounds alternate. A message says when its sender sent it, and each
device notes when it came: the figure is the time until 99 of 100 devices have it, from the first byte of the request on.
"""

import json
import os
import pathlib
import resource
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import time

import h2.config
import h2.connection
import h2.events

from peers import LOAD, RELEASE, Herald, Identities, Mosquitto, cpu_seconds, provider_token

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROUNDS = int(os.environ.get("HERALD_BENCH_ROUNDS", "3"))
DEVICES = int(os.environ.get("HERALD_BENCH_BROADCAST", "10000"))
BUNDLE = "com.example.bench"
PAYLOAD_BYTES = 300
BROADCASTS = 5
# Between two messages, in seconds: longer than one of them takes.
PAUSE = 2


def payload():
    """Of the form that the load reads: 1, and the monotonic clock in eighteen digits of nanoseconds."""
    head = '{"t":1%018d,"aps":{"alert":"' % time.monotonic_ns()
    return (head + "x" * (PAYLOAD_BYTES - len(head) - 3) + '"}}').encode()


class Provider:
    """One HTTP/2 connection that makes a channel and sends to it."""

    def __init__(self, herald):
        keys = herald.data.parent / f"{herald.data.name}-keys"
        keys.mkdir(exist_ok=True)
        subprocess.run([str(RELEASE / "herald"), "provider", "key", "--data", str(herald.data), "--team", "BENCH00001",
                        "--out", str(keys)], check=True, capture_output=True)
        (key,) = keys.glob("AuthKey_*.p8")
        self.bearer = "bearer " + provider_token(key, key.stem.removeprefix("AuthKey_"), "BENCH00001")
        context = ssl.create_default_context(cafile=str(herald.ca))
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", herald.port("api")))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        answer = self.ask(f"/1/apps/{BUNDLE}/channels", b'{"message-storage-policy":0,"push-type":"LiveActivity"}')
        self.channel = answer["apns-channel-id"]

    @property
    def filter(self):
        return f"channels/{BUNDLE}/" + self.channel.replace("/", "_").replace("+", "-")

    def send(self, body):
        self.ask(f"/4/broadcasts/apps/{BUNDLE}", body, ("apns-channel-id", self.channel), ("apns-expiration", "0"),
                 ("apns-priority", "10"), ("apns-push-type", "liveactivity"))

    def ask(self, path, body, *fields):
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"),
                                      (":path", path), ("authorization", self.bearer), *fields])
        self.h2.send_data(stream, body, end_stream=True)
        self.socket.sendall(self.h2.data_to_send())
        answer = {}
        while True:
            for event in self.h2.receive_data(self.socket.recv(65536)):
                if isinstance(event, h2.events.ResponseReceived):
                    answer = dict(event.headers)
                if isinstance(event, h2.events.StreamEnded):
                    if answer[":status"] not in ("200", "201"):
                        raise RuntimeError(f"{path} was answered {answer}")
                    return answer
            self.socket.sendall(self.h2.data_to_send())


class Publisher:
    """One MQTT connection that sends to a topic (QoS 1), and waits for the PUBACK."""

    filter = "bench/all"

    def __init__(self, mosquitto, identities, number):
        context = ssl.create_default_context(cafile=str(mosquitto.ca))
        context.load_cert_chain(str(identities.pem / f"{number}.pem"))
        plain = socket.create_connection(("127.0.0.1", mosquitto.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self._packet(0x10, b"\x00\x04MQTT\x04\x02\x00\x00" + _text("publisher"))
        self._expect(b"\x20\x02\x00\x00")

    def send(self, body):
        self._packet(0x32, _text(self.filter) + b"\x00\x01" + body)
        self._expect(b"\x40\x02\x00\x01")

    def _packet(self, kind, body):
        length = bytes([len(body) % 128 | 128, len(body) // 128]) if len(body) > 127 else bytes([len(body)])
        self.socket.sendall(bytes([kind]) + length + body)

    def _expect(self, wanted):
        found = b""
        while len(found) < len(wanted):
            found += self.socket.recv(len(wanted) - len(found))
        if found != wanted:
            raise RuntimeError(f"mosquitto answered {found.hex()}")


def _text(text):
    return len(text).to_bytes(2, "big") + text.encode()


def measure(server, port, identities, sender):
    """Connects the devices, sends to all of them some times, and returns what the load measured."""
    command = [*LOAD, str(RELEASE / "DeviceLoad"), "--port", str(port), "--ca", str(server.ca), "--identities",
               str(identities.pem), "--devices", str(DEVICES), "--subscribe", sender.filter,
               "--seconds", str(PAUSE * (BROADCASTS + 3))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        if "connected" not in load.stdout.readline():
            raise RuntimeError("the devices did not connect")
        # The load warms up for a second.
        time.sleep(1 + PAUSE / 2)
        before = cpu_seconds(server.pid)
        for _ in range(BROADCASTS):
            sender.send(payload())
            time.sleep(PAUSE)
        cpu = cpu_seconds(server.pid) - before
        outcome = json.loads(load.stdout.read().splitlines()[-1])
    if outcome["received"] != DEVICES * BROADCASTS:
        raise RuntimeError(f"{outcome['received']:.0f} of {DEVICES * BROADCASTS} copies came")
    return {**outcome, "cpu_us": cpu / outcome["received"] * 1e6}


def broadcast(folder, identities):
    """The outcomes of ours and of the peer, a round of each in turn."""
    ours, peer = [], []
    for number in range(ROUNDS):
        with Herald(folder / f"herald{number}", identities) as herald:
            ours.append(measure(herald, herald.port("device"), identities, Provider(herald)))
        with Mosquitto(folder / f"mosquitto{number}", identities) as mosquitto:
            peer.append(measure(mosquitto, mosquitto.port, identities, Publisher(mosquitto, identities, DEVICES)))
    return ours, peer


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < DEVICES + 200:
        sys.exit(f"one process holds {DEVICES:,} connections, but `ulimit -Hn` is {hard}: raise it, or choose less by "
                 "HERALD_BENCH_BROADCAST")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # One event loop for the one core, as the peer has one thread.
    os.environ["NIO_SINGLETON_GROUP_LOOP_COUNT"] = "1"
    folder = ROOT / ".build" / "bench-broadcast"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    identities = Identities(ROOT / ".build" / "bench-identities", DEVICES + 1)
    ours, peer = broadcast(folder, identities)
    for name, unit in [("p50_ms", "ms"), ("p99_ms", "ms"), ("cpu_us", "us CPU per copy")]:
        mine, other = (statistics.median(outcome[name] for outcome in outcomes) for outcomes in (ours, peer))
        print(f"broadcast {name:7} {mine:10.1f}   mosquitto {other:10.1f}   {unit:16} ratio {other / mine:5.2f}")
    mine, other = (statistics.median(outcome["p99_ms"] for outcome in outcomes) for outcomes in (ours, peer))
    target = ROOT / "bench" / "results.json"
    target.parent.mkdir(exist_ok=True)
    figures = json.loads(target.read_text()) if target.exists() else {}
    figures["broadcast"] = {"ours": round(mine, 3), "peer": round(other, 3), "ratio": round(other / mine, 3),
                            "unit": f"ms (p99, {DEVICES:,} devices)", "peer_name": "mosquitto"}
    target.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
