"""One message to many connected devices: Herald's broadcast, beside mosquitto's PUBLISH to as many subscribers."""

import socket
import ssl
import statistics
import time

import h2.config
import h2.connection
import h2.events

from loads import PAYLOAD_BYTES, DeviceLoad, Window
from machine import WORK
from provider_figures import TOPIC
from servers import Herald, Mosquitto

MESSAGES = 5
# Between two messages, in seconds: longer than one of them takes.
PAUSE = 2


def payload():
    """Of the form that the load reads: 1, and the monotonic clock in eighteen digits of nanoseconds."""
    head = '{"t":1%018d,"aps":{"alert":"' % time.monotonic_ns()
    return (head + "x" * (PAYLOAD_BYTES - len(head) - 3) + '"}}').encode()


class Provider:
    """One HTTP/2 connection that makes a channel and sends to it."""

    def __init__(self, herald):
        self.bearer = "bearer " + herald.provider_token()
        context = ssl.create_default_context(cafile=str(herald.ca))
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", herald.port("api")))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        answer = self.ask(f"/1/apps/{TOPIC}/channels", b'{"message-storage-policy":0,"push-type":"LiveActivity"}')
        self.channel = answer["apns-channel-id"]

    @property
    def filter(self):
        return f"channels/{TOPIC}/" + self.channel.replace("/", "_").replace("+", "-")

    def send(self, body):
        self.ask(f"/4/broadcasts/apps/{TOPIC}", body, ("apns-channel-id", self.channel), ("apns-expiration", "0"),
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


def _measure(server, port, settings, sender):
    """Sends to all devices some times, and returns when and at what cost the copies came."""
    devices = settings.broadcast
    with DeviceLoad(port, server.ca, settings.identities, devices, sender.filter) as load:
        load.ask("begin")
        window = Window(server.pid, [load.pid])
        for _ in range(MESSAGES):
            sender.send(payload())
            time.sleep(PAUSE)
        window.end()
        outcome = load.ask("end")
    if outcome["lost"] or outcome["received"] != devices * MESSAGES:
        server.fail(f"brought {outcome['received']:.0f} of {devices * MESSAGES} copies, lost {outcome['lost']:.0f} devices")
    return {**outcome, "cpu_us": window.server / outcome["received"] * 1e6}


def broadcast(settings, report):
    """From the first byte of one request until 99 of 100 devices have the message, at QoS 1."""
    ours, peer = [], []
    for _ in range(settings.idle_rounds):
        with Herald(WORK / "broadcast", settings.identities.data) as herald:
            ours.append(_measure(herald, herald.port("device"), settings, Provider(herald)))
        with Mosquitto(WORK / "broadcast-mosquitto", settings.identities) as mosquitto:
            publisher = Publisher(mosquitto, settings.identities, settings.broadcast)
            peer.append(_measure(mosquitto, mosquitto.port, settings, publisher))

    def times(key):
        return [outcome[key] for outcome in ours], [outcome[key] for outcome in peer]

    p50, cpu = ([statistics.median(values) for values in times(key)] for key in ("p50_ms", "cpu_us"))
    report.figure("broadcast", *times("p99_ms"), f"ms (p99 of {settings.broadcast:,})", "mosquitto", lower_is_better=True,
                  note=f"p50 {p50[0]:.0f} and {p50[1]:.0f} ms; {cpu[0]:.0f} and {cpu[1]:.0f} us CPU for each copy")
