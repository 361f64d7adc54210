"""A device of Herald's, packet by packet, on top of `mqtt_packets`."""

import time

import mqtt_packets as mqtt
import mqtt_wire
from mqtt_packets import Kind, Property
from service import TOPIC

MAIL = "com.example.mail"
APPS = tuple(f"com.example.app{number}" for number in range(8))
#: The session expiry interval of tests that need one.
LONG = 3600


def stays_open(connect, tell):
    """Asserts that a connection with a keep-alive of three seconds stays open for longer than one and a half of it, if `tell` says
    something about every second. On a machine that pauses for so long, it tries again."""
    for _ in range(5):
        link, moments = connect(), [time.monotonic()]
        try:
            while len(moments) < 7:
                tell(link)
                moments.append(time.monotonic())
            return link.settled()
        except mqtt_wire.Closed:
            moments.append(time.monotonic())
            assert max(after - before for before, after in zip(moments, moments[1:])) > 4, "closed in spite of what was said"
    raise AssertionError("five times there were seconds between two packets")


class Refused(AssertionError):
    """A CONNECT was refused, for this reason."""

    def __init__(self, reason):
        super().__init__(f"refused with 0x{reason:02x}")
        self.reason = reason


class Identity:
    """An enrolled device: its certificate, and the connections that it makes."""

    def __init__(self, service, name="device"):
        self.service = service
        self.path, self.id = service.device(name)
        self._links = []

    def wire(self, **options):
        """A TLS connection before its CONNECT."""
        return self._keep(Wire, **options)

    def connect(
        self, version=5, *, clean=True, expiry=None, client_id=None, properties=(), name="localhost", **options
    ):
        """A connection that the service has accepted.

        `expiry` is the session expiry interval in seconds (5.0 only; 3.1.1 keeps a session that is not clean).
        """
        link = self._keep(Link, version=version, name=name)
        if expiry is not None and version == 5:
            properties = ((Property.SESSION_EXPIRY, expiry), *properties)
        link.maximum_packet_size = dict(properties).get(Property.MAXIMUM_PACKET_SIZE)
        identifier = self.id if client_id is None else client_id
        link.send(mqtt.connect(identifier, version, clean=clean, properties=properties, **options))
        link.connack = link.expect(Kind.CONNACK)
        if link.connack.reason:
            raise Refused(link.connack.reason)
        return link

    def stay(self, version=5, **options):
        """A connection whose session outlives it."""
        return self.connect(version, clean=False, expiry=LONG, **options)

    def _keep(self, kind, *, certificate=True, tls=None, **options):
        context = mqtt_wire.tls_context(self.service.ca, self.path if certificate else None, tls)
        link = kind(self.service.listeners["device"], context, host=self.service.host, **options)
        self._links.append(link)
        return link

    def close(self):
        for link in self._links:
            link.close()
        self._links.clear()


class Wire(mqtt_wire.Wire):
    """A connection that may be refused at CONNECT."""

    def refused_at_connect(self, *reasons):
        """Asserts that the CONNECT is refused for one of these reasons, and the connection closed."""
        (connack,) = self.refused(*reasons, kind=Kind.CONNACK)
        return connack


class Link(Wire):
    """A device's connection after its CONNACK."""

    connack = None
    _packet_id = 0

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        #: Packets that came before an awaited one.
        self._held = []

    def read(self, timeout=None):
        return self._held.pop(0) if self._held else super().read(timeout)

    def packet_id(self):
        self._packet_id += 1
        return self._packet_id

    def request(self, build, *arguments, answer, **options):
        """Sends a packet with a packet identifier, and returns its answer, which is the next packet."""
        number = self.packet_id()
        self.send(build(number, *arguments, version=self.version, **options))
        found = self.expect(answer)
        assert found.packet_id == number, f"[MQTT-2.2.1-6] the answer to {number} is to {found.packet_id}"
        return found

    def subscribe(self, *filters, qos=1, **options):
        """Subscribes, and returns the SUBACK."""
        pairs = [(name, qos) if isinstance(name, str) else name for name in filters]
        return self.request(mqtt.subscribe, *pairs, answer=Kind.SUBACK, **options)

    def unsubscribe(self, *filters, **options):
        return self.request(mqtt.unsubscribe, *filters, answer=Kind.UNSUBACK, **options)

    def publish(self, topic, payload=b"", **options):
        """Publishes at QoS 1, and returns the PUBACK."""
        def build(number, version):
            return mqtt.publish(topic, payload, version, qos=1, packet_id=number, **options)

        return self.request(build, answer=Kind.PUBACK)

    def register(self, *topics, qos=1):
        """Subscribes to everything of each topic (one, unless told otherwise) and returns its token, or all of them."""
        tokens = []
        for topic in topics or (TOPIC,):
            suback = self.subscribe(f"apps/{topic}/#", qos=qos)
            assert suback.reasons == (qos,)
            tokens.append(self.token(topic))
        return tokens[0] if len(tokens) == 1 else tokens

    def token(self, topic=TOPIC):
        """The token of a topic, acknowledged. Notifications for it may come before, and stay to be read."""
        found = self.expect(Kind.PUBLISH)
        before = []
        while found.topic == f"apps/{topic}":
            before.append(found)
            found = self.expect(Kind.PUBLISH)
        self._held = before + self._held
        assert found.topic == f"apps/{topic}/token", f"the token of {topic} was to come, and {found} came"
        self.acknowledge(found)
        return found.payload.decode()

    def notification(self, topic=TOPIC, acknowledge=True, timeout=None):
        """The next packet is a notification for a topic; it is acknowledged, unless told otherwise, and returned."""
        return self.next(f"apps/{topic}", acknowledge, timeout)

    def next(self, topic=None, acknowledge=True, timeout=None):
        """The next packet is a PUBLISH, for this topic if one is named."""
        found = self.expect(Kind.PUBLISH, timeout)
        assert topic in (None, found.topic), f"something for {topic} was to come, and {found} came"
        if acknowledge:
            self.acknowledge(found)
        return found

    def acknowledge(self, *publishes):
        self.send(*(mqtt.puback(found.packet_id, self.version) for found in publishes if found.qos))

    def register_and_receive(self, provider):
        """Registers and takes a first notification: from then on they go straight to this connection. Returns the token.

        Until what waits for the app has been read, they are stored first, and there a newer one replaces an older.
        """
        token = self.register()
        assert provider.push(token).status == 200
        self.notification()
        return token

    def settled(self):
        """Asserts that the connection is open, and that nothing precedes the answer to a PINGREQ."""
        before = self.ping()
        assert not before, f"nothing was to come, and {before} came"

    def caught_up(self):
        """Waits until the service has processed earlier packets: it processes those of a device one by one."""
        self.unsubscribe("foreign/topic")

    def leave(self, reason=0, properties=None):
        """Disconnects as the standard has it, and waits for the service to close."""
        self.send(mqtt.disconnect(self.version, reason, properties))
        packets = self.until_closed()
        assert not [found for found in packets if found.kind != Kind.PUBLISH], f"after DISCONNECT came {packets}"
        self.close()
