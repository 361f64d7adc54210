"""One message to many connected devices: Herald's broadcast, beside mosquitto's PUBLISH to as many subscribers."""

import socket
import ssl
import statistics
import time

from loads import DeviceLoad, Window
from machine import WORK
from provider_connection import ProviderConnection, payload
from provider_figures import TOPIC
from servers import Herald, Mosquitto

MESSAGES = 5
# Between two messages, in seconds: longer than one of them takes.
PAUSE = 2


class Provider(ProviderConnection):
    """A connection that sends to a channel; without one it makes one."""

    def __init__(self, herald, channel=None):
        super().__init__(herald, herald.provider_token())
        self.channel = channel or self.ask(
            f"/1/apps/{TOPIC}/channels", b'{"message-storage-policy":0,"push-type":"LiveActivity"}')["apns-channel-id"]

    @property
    def filter(self):
        return f"channels/{TOPIC}/" + self.channel.replace("/", "_").replace("+", "-")

    def send(self, body):
        self.ask(f"/4/broadcasts/apps/{TOPIC}", body, ("apns-channel-id", self.channel), ("apns-expiration", "0"),
                 ("apns-priority", "10"), ("apns-push-type", "liveactivity"))


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
