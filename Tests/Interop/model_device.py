"""A device in a random history: its connections, its tokens, and what it has not acknowledged."""

import json

import channels
import mqtt_packets as mqtt
import mqtt_wire
from model_oracle import Arrival, Connection, Copy
from mqtt_packets import PINGREQ, Kind, Property
from mqtt_wire import Silence

#: Connections of one device: the eleventh takeover within a minute is refused.
CONNECTIONS = 10


class Link(mqtt_wire.Wire):
    """A device's connection that reads what is there and loses nothing when it stops half-way."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._taken = bytearray()

    def _take(self, count, end):
        part = super()._take(count, end)
        self._taken += part
        return part

    def read(self, timeout=None):
        self._taken.clear()
        try:
            return super().read(timeout)
        except Silence:
            self._bytes[:0] = self._taken
            raise


class Device:
    """One device: its certificate, its connection, and the tokens that it holds."""

    def __init__(self, player, path, id):
        self.player, self.history = player, player.history
        self.path, self.id = path, id
        self.link = self.connection = None
        self.connections = 0
        #: Of the connection: the QoS of each filter, by topic; and what is not acknowledged, in the order of arrival.
        self.filters = {}
        self.unacknowledged = []
        self._packet_id = 0
        #: The moment before which everything that the service had sent was read.
        self.drained = 0
        #: Whether the service may have closed the connection, since what waited on it looks expired by a jump.
        self.may_be_closed = False

    def connect(self, version, clean, expiry, window):
        if self.connections >= CONNECTIONS:
            return
        self.connections += 1
        former = self.link, self.connection, self.unacknowledged
        context = mqtt_wire.tls_context(self.player.service.ca, self.path)
        link = Link(self.player.service.listeners["device"], context, version=version)
        properties = [(Property.SESSION_EXPIRY, expiry)] if version == 5 and expiry else []
        if version == 5 and window:
            properties.append((Property.RECEIVE_MAXIMUM, window))
        opened = self.history.place()
        link.send(mqtt.connect(self.id, version, clean=clean, properties=properties))
        connack = link.expect(Kind.CONNACK)
        assert connack.reason == 0, f"refused: {connack}"
        if former[0]:
            # A takeover ended the former connection: its last packets can still be read.
            self.read_rest()
        number = len(self.history.connections) + 1
        limit = (window or 65535) if version == 5 else 20
        self.connection = Connection(number, self.id, opened, min(limit, 128))
        self.history.connections.append(self.connection)
        self.link, self.unacknowledged = link, []
        self.filters = dict(self.filters) if connack.session_present else {}
        self._note_quality()
        self.drained = 0
        self.may_be_closed = False
        self.history.note(
            f"{self.name} connects: {number}, version {version}, clean {clean}, present {connack.session_present}, "
            f"expiry {expiry}, window {window}"
        )

    @property
    def name(self):
        return self.player.devices.index(self)

    def read_rest(self):
        """The service ends, or has ended, the connection."""
        link, self.link = self.link, None
        for found in link.until_closed():
            if found.kind == Kind.PUBLISH:
                self.take(found)
        link.close()
        self.connection.closed = self.history.place()

    def drop(self):
        """Loses the network: unread packets are lost."""
        if self.link:
            self.link.close()
            self.link, self.connection.closed = None, self.history.place()
            self.history.note(f"{self.name} drops {self.connection.number}")

    def leave(self):
        if self.link:
            self.history.note(f"{self.name} disconnects {self.connection.number}")
            self.link.send(mqtt.disconnect(self.link.version))
            self.read_rest()

    # Packets.

    def take(self, found):
        """Records a PUBLISH."""
        if found.topic.endswith("/token"):
            topic = found.topic.removeprefix("apps/").removesuffix("/token")
            self.player.tokens[self.id, topic] = found.payload.decode()
            if found.qos and self.link:
                self.link.send(mqtt.puback(found.packet_id, self.link.version))
            return
        body = json.loads(found.payload)
        if "broadcast" in body:
            self.history.copies.append(Copy(self.history.broadcasts[body["broadcast"] - 1], self.connection))
            self.history.note(f"{self.name} reads broadcast {body['broadcast']} on {self.connection.number}")
            if found.qos and self.link:
                self.link.send(mqtt.puback(found.packet_id, self.link.version))
            return
        post = self.history.posts[body["id"]]
        assert found.topic == f"apps/{post.topic}", f"{post} came as {found.topic}"
        if found.version == 5:
            self.check_properties(found, post)
        arrival = Arrival(post.id, self.connection, self.history.place(), found.qos, self.drained)
        self.history.arrivals.append(arrival)
        self.history.note(f"{self.name} reads {post.id[:8]} on {self.connection.number} at QoS {found.qos}")
        if found.qos:
            self.unacknowledged.append((found.packet_id, arrival))

    def check_properties(self, found, post):
        assert found.user["apns-id"] == post.id
        left = found.value(Property.MESSAGE_EXPIRY)
        assert (left is not None) == post.storable, f"{post} has the message expiry interval {left}"
        if post.expires:
            most = (post.expires - self.drained) / 1000 + 2
            least = (post.expires - self.player.now()) / 1000 - 2
            assert max(1, least) <= left <= most, f"{post} has {left} s left, not {least} to {most}"

    def await_answer(self, kind, number=None):
        """Reads up to an answer, and takes what comes before it."""
        while True:
            found = self.link.read()
            if found.kind == kind and number in (None, found.packet_id):
                return found
            assert found.kind == Kind.PUBLISH, f"{kind.name} was to come, and {found} came"
            self.take(found)

    def request(self, build, *arguments, answer, **options):
        self._packet_id += 1
        self.link.send(build(self._packet_id, *arguments, version=self.link.version, **options))
        return self.await_answer(answer, self._packet_id)

    def drain(self):
        """Reads all that the service has sent so far; what was acknowledged before has been seen by then."""
        if not self.link:
            return
        now, sent = self.player.now(), [arrival for arrival in self.history.arrivals if arrival.acknowledged]
        self.link.send(PINGREQ)
        self.await_answer(Kind.PINGRESP)
        place = self.history.place()
        for arrival in sent:
            if arrival.connection is self.connection and not arrival.settled:
                arrival.settled = place
        self.drained = now

    def glance(self, seconds):
        """Reads what comes within a time, and acknowledges it at once."""
        if not self.link:
            return
        try:
            found = self.link.read(seconds)
        except Silence:
            return
        if found.kind == Kind.PUBLISH:
            self.take(found)
            self.acknowledge("last")

    def acknowledge(self, which):
        if not self.link or not self.unacknowledged:
            return
        some = {"all": slice(None), "first": slice(0, 1), "last": slice(-1, None)}[which]
        for number, arrival in self.unacknowledged[some]:
            arrival.acknowledged = self.history.place()
            self.history.note(f"{self.name} acknowledges {arrival.id[:8]}")
            self.link.send(mqtt.puback(number, self.link.version))
        del self.unacknowledged[some]

    # The device contract.

    def subscribe(self, topics, qos, suffix):
        if not self.link:
            return
        filters = [(f"apps/{topic}/{suffix}".rstrip("/"), qos) for topic in topics]
        # Writing may begin before the answer is read.
        for topic in topics:
            if qos == 0:
                self.connection.unacknowledging.add(topic)
        answer = self.request(mqtt.subscribe, *filters, answer=Kind.SUBACK)
        assert answer.reasons == (qos,) * len(filters), answer
        for (name, _), topic in zip(filters, topics):
            self.filters.setdefault(topic, {})[name] = qos
            self.player.registered(self.id, topic)
        self._note_quality()
        self.history.note(f"{self.name} subscribes {filters}")
        self.drain()

    def unsubscribe(self, topic):
        if not self.link:
            return
        names = [f"apps/{topic}/#", f"apps/{topic}", f"apps/{topic}/token"]
        self.request(mqtt.unsubscribe, *names, answer=Kind.UNSUBACK)
        self.filters.pop(topic, None)
        self.player.unregistered(self.id, topic)
        self.history.note(f"{self.name} removes {topic}")

    def listen(self, topic, channel):
        if not self.link:
            return False
        answer = self.request(mqtt.subscribe, (channels.filter_of(channel, topic), 1), answer=Kind.SUBACK)
        assert answer.reasons == (1,), answer
        self.history.note(f"{self.name} listens to {channel}")
        self.drain()
        return True

    def tell(self, topic, message):
        if not self.link:
            return False
        def build(number, version):
            return mqtt.publish(topic, json.dumps(message).encode(), version, qos=1, packet_id=number)

        answer = self.request(build, answer=Kind.PUBACK)
        assert answer.reason == 0, answer
        self.history.note(f"{self.name} tells {topic} {message}")
        return True

    def _note_quality(self):
        for topic, filters in self.filters.items():
            wanted = [qos for name, qos in filters.items() if not name.endswith("/token")]
            if wanted and max(wanted) == 0:
                self.connection.unacknowledging.add(topic)
