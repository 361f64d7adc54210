"""The packets of MQTT 3.1.1 and 5.0, byte by byte, written from the two OASIS standards.

The builders write what they are told to, also what the standards forbid; `read_packet` holds what the service sends
against them.
"""

import dataclasses
import enum


class Kind(enum.IntEnum):
    """The control packets (MQTT 5 §2.1.2)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


class Property(enum.IntEnum):
    """The properties (MQTT 5 §2.2.2.2)."""

    PAYLOAD_FORMAT = 0x01
    MESSAGE_EXPIRY = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    SUBSCRIPTION_ID = 0x0B
    SESSION_EXPIRY = 0x11
    ASSIGNED_CLIENT_ID = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTHENTICATION_METHOD = 0x15
    AUTHENTICATION_DATA = 0x16
    REQUEST_PROBLEM_INFORMATION = 0x17
    WILL_DELAY = 0x18
    REQUEST_RESPONSE_INFORMATION = 0x19
    RESPONSE_INFORMATION = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON_STRING = 0x1F
    RECEIVE_MAXIMUM = 0x21
    TOPIC_ALIAS_MAXIMUM = 0x22
    TOPIC_ALIAS = 0x23
    MAXIMUM_QOS = 0x24
    RETAIN_AVAILABLE = 0x25
    USER = 0x26
    MAXIMUM_PACKET_SIZE = 0x27
    WILDCARD_AVAILABLE = 0x28
    SUBSCRIPTION_ID_AVAILABLE = 0x29
    SHARED_AVAILABLE = 0x2A


class Reason(enum.IntEnum):
    """The reason codes that Herald gives (MQTT 5 §2.4)."""

    SUCCESS = 0x00
    NO_SUBSCRIPTION_EXISTED = 0x11
    MALFORMED = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC = 0x83
    VERSION = 0x84
    CLIENT_ID = 0x85
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    BUSY = 0x89
    SHUTTING_DOWN = 0x8B
    AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE = 0x8D
    TAKEN_OVER = 0x8E
    TOPIC_FILTER = 0x8F
    TOPIC_NAME = 0x90
    TOPIC_ALIAS = 0x94
    PACKET_TOO_LARGE = 0x95
    QUOTA = 0x97
    ADMINISTRATIVE = 0x98
    PAYLOAD_FORMAT = 0x99
    RETAIN = 0x9A
    QOS = 0x9B
    SHARED = 0x9E
    RATE = 0x9F
    SUBSCRIPTION_ID = 0xA1
    WILDCARD = 0xA2


P = Property

# The encoding of each property's value.
ONE_BYTE = {
    P.PAYLOAD_FORMAT, P.REQUEST_PROBLEM_INFORMATION, P.REQUEST_RESPONSE_INFORMATION, P.MAXIMUM_QOS,
    P.RETAIN_AVAILABLE, P.WILDCARD_AVAILABLE, P.SUBSCRIPTION_ID_AVAILABLE, P.SHARED_AVAILABLE,
}
TWO_BYTES = {P.SERVER_KEEP_ALIVE, P.RECEIVE_MAXIMUM, P.TOPIC_ALIAS_MAXIMUM, P.TOPIC_ALIAS}
FOUR_BYTES = {P.MESSAGE_EXPIRY, P.SESSION_EXPIRY, P.WILL_DELAY, P.MAXIMUM_PACKET_SIZE}
BINARY = {P.CORRELATION_DATA, P.AUTHENTICATION_DATA}

# The properties that a server may send in each packet (MQTT 5 §2.2.2.2, and the section of each packet).
EXPLANATION = {P.REASON_STRING, P.USER}
FROM_SERVER = {
    Kind.CONNACK: EXPLANATION | {
        P.SESSION_EXPIRY, P.ASSIGNED_CLIENT_ID, P.SERVER_KEEP_ALIVE, P.AUTHENTICATION_METHOD, P.AUTHENTICATION_DATA,
        P.RESPONSE_INFORMATION, P.SERVER_REFERENCE, P.RECEIVE_MAXIMUM, P.TOPIC_ALIAS_MAXIMUM, P.MAXIMUM_QOS,
        P.RETAIN_AVAILABLE, P.MAXIMUM_PACKET_SIZE, P.WILDCARD_AVAILABLE, P.SUBSCRIPTION_ID_AVAILABLE,
        P.SHARED_AVAILABLE,
    },
    Kind.PUBLISH: {
        P.PAYLOAD_FORMAT, P.MESSAGE_EXPIRY, P.CONTENT_TYPE, P.RESPONSE_TOPIC, P.CORRELATION_DATA, P.SUBSCRIPTION_ID,
        P.TOPIC_ALIAS, P.USER,
    },
    Kind.PUBACK: EXPLANATION,
    Kind.PUBREL: EXPLANATION,
    Kind.PUBCOMP: EXPLANATION,
    Kind.SUBACK: EXPLANATION,
    Kind.UNSUBACK: EXPLANATION,
    # No session expiry interval: [MQTT-3.14.2-2].
    Kind.DISCONNECT: EXPLANATION | {P.SERVER_REFERENCE},
}

# The reason codes that a server may send in each packet (the tables of §3.2.2.2, 3.4.2.1, 3.9.3, 3.11.3, 3.14.2.1).
REASONS = {
    Kind.CONNACK: {0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97,
                   0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F},
    Kind.PUBACK: {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99},
    # A service that has no QoS 2 knows no packet identifier of it.
    Kind.PUBREL: {0x92},
    Kind.PUBCOMP: {0x92},
    Kind.SUBACK: {0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2},
    Kind.UNSUBACK: {0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91},
    Kind.DISCONNECT: {0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94, 0x95, 0x96,
                      0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2},
}


class Violation(AssertionError):
    """The service violated the standard."""


# Values as bytes.


def u16(number):
    return number.to_bytes(2, "big")


def u32(number):
    return number.to_bytes(4, "big")


def varint(number, size=0):
    """A variable byte integer; `size` asks for more bytes than the value needs, which is malformed."""
    data = bytearray()
    while True:
        number, digit = number >> 7, number & 0x7F
        more = number > 0 or len(data) + 1 < size
        data.append(digit | 0x80 if more else digit)
        if not more:
            return bytes(data)


def text(value):
    """A string with its length before it; bytes are taken as they are, well-formed or not."""
    data = value.encode() if isinstance(value, str) else value
    return u16(len(data)) + data


def property_block(*pairs):
    """A block of properties with its length before it, in the order given, repetitions included."""
    data = b"".join(varint(identifier) + _value(identifier, value) for identifier, value in pairs)
    return varint(len(data)) + data


def _value(identifier, value):
    if identifier in ONE_BYTE:
        return bytes([value])
    if identifier in TWO_BYTES:
        return u16(value)
    if identifier in FOUR_BYTES:
        return u32(value)
    if identifier == P.SUBSCRIPTION_ID:
        return varint(value)
    if identifier == P.USER:
        return text(value[0]) + text(value[1])
    return text(value)


def user(name, value):
    """A user property."""
    return P.USER, (name, value)


# Packets as bytes. Each builder writes a correct packet by default.


def packet(kind, body=b"", flags=0):
    return bytes([kind << 4 | flags]) + varint(len(body)) + body


@dataclasses.dataclass
class Will:
    topic: str = "will/topic"
    payload: bytes = b"gone"
    qos: int = 0
    retain: bool = False
    properties: tuple = ()


def connect(
    client_id, version=5, *, clean=True, keep_alive=60, properties=(), will=None, username=None, password=None,
    protocol="MQTT", level=None, flags=None,
):
    """A CONNECT; `level` and `flags` replace the true protocol level and connect flags."""
    bits = clean << 1
    if will:
        bits |= 1 << 2 | will.qos << 3 | will.retain << 5
    bits |= (password is not None) << 6 | (username is not None) << 7
    body = text(protocol) + bytes([version if level is None else level, bits if flags is None else flags])
    body += u16(keep_alive)
    if version == 5:
        body += property_block(*properties)
    body += text(client_id)
    if will:
        if version == 5:
            body += property_block(*will.properties)
        body += text(will.topic) + text(will.payload)
    body += b"" if username is None else text(username)
    body += b"" if password is None else text(password)
    return packet(Kind.CONNECT, body)


def publish(
    topic, payload=b"", version=5, *, qos=0, packet_id=None, properties=(), retain=False, duplicate=False, flags=None
):
    body = text(topic)
    if packet_id is not None:
        body += u16(packet_id)
    if version == 5:
        body += property_block(*properties)
    bits = duplicate << 3 | qos << 1 | retain
    return packet(Kind.PUBLISH, body + payload, bits if flags is None else flags)


def puback(packet_id, version=5, reason=0, properties=None):
    body = u16(packet_id)
    if version == 5 and (reason or properties is not None):
        body += bytes([reason])
        if properties is not None:
            body += property_block(*properties)
    return packet(Kind.PUBACK, body)


def subscribe(packet_id, *filters, version=5, properties=(), flags=2):
    """`filters` are pairs of a filter and its options (in the least case, the QoS)."""
    body = u16(packet_id)
    if version == 5:
        body += property_block(*properties)
    return packet(Kind.SUBSCRIBE, body + b"".join(text(name) + bytes([options]) for name, options in filters), flags)


def unsubscribe(packet_id, *filters, version=5, properties=(), flags=2):
    body = u16(packet_id)
    if version == 5:
        body += property_block(*properties)
    return packet(Kind.UNSUBSCRIBE, body + b"".join(text(name) for name in filters), flags)


def disconnect(version=5, reason=0, properties=None):
    if version != 5 or (reason == 0 and properties is None):
        return packet(Kind.DISCONNECT)
    body = bytes([reason])
    if properties is not None:
        body += property_block(*properties)
    return packet(Kind.DISCONNECT, body)


def auth(reason=0x18, *pairs):
    return packet(Kind.AUTH, bytes([reason]) + property_block(*pairs))


PINGREQ = packet(Kind.PINGREQ)


# Packets of the service


@dataclasses.dataclass
class Packet:
    """One packet from the service, checked against the standard."""

    kind: Kind
    version: int
    #: All bytes of it.
    size: int
    packet_id: int = None
    #: The reason code, or in 3.1.1 the return code.
    reason: int = 0
    reasons: tuple = ()
    session_present: bool = False
    topic: str = None
    payload: bytes = b""
    qos: int = 0
    duplicate: bool = False
    retain: bool = False
    #: Pairs, in the order in which they came.
    properties: tuple = ()

    def value(self, identifier):
        """The value of a property; None if it did not come."""
        return next((value for name, value in self.properties if name == identifier), None)

    @property
    def user(self):
        """The user properties as a dictionary; each name may come once."""
        pairs = [value for name, value in self.properties if name == P.USER]
        names = dict(pairs)
        assert len(names) == len(pairs), f"a user property came twice: {pairs}"
        return names


class _Body:
    """Reads a packet's body from the front."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise Violation(f"a packet ends too early: {self.data.hex()}")
        part = self.data[self.at : self.at + count]
        self.at += count
        return part

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def varint(self):
        value = 0
        for shift in range(0, 28, 7):
            digit = self.number(1)
            value |= (digit & 0x7F) << shift
            if digit < 0x80:
                if shift and digit == 0:
                    raise Violation("[MQTT-1.5.5-1] a variable byte integer has more bytes than it needs")
                return value
        raise Violation("a variable byte integer has more than four bytes")

    def text(self):
        data = self.take(self.number(2))
        try:
            value = data.decode()
        except UnicodeDecodeError as error:
            raise Violation(f"[MQTT-1.5.4-1] a string is not UTF-8: {data.hex()}") from error
        if "\0" in value:
            raise Violation("[MQTT-1.5.4-2] a string has a null character")
        return value

    def properties(self, kind):
        end = self.varint()
        block = _Body(self.take(end))
        pairs = []
        while block.at < len(block.data):
            identifier = block.varint()
            if identifier not in FROM_SERVER[kind]:
                raise Violation(f"property 0x{identifier:02x} has no place in {kind.name} from a server")
            if identifier != P.USER and any(name == identifier for name, _ in pairs):
                raise Violation(f"property {P(identifier).name} came twice")
            pairs.append((P(identifier), block.value(identifier)))
        return tuple(pairs)

    def value(self, identifier):
        if identifier in ONE_BYTE:
            value = self.number(1)
            if value > 1:
                raise Violation(f"{P(identifier).name} is {value}")
            return value
        if identifier in TWO_BYTES:
            return self.number(2)
        if identifier in FOUR_BYTES:
            return self.number(4)
        if identifier == P.SUBSCRIPTION_ID:
            return self.varint()
        if identifier in BINARY:
            return self.take(self.number(2))
        if identifier == P.USER:
            return self.text(), self.text()
        return self.text()

    def rest(self):
        return self.take(len(self.data) - self.at)


def read_packet(first, data, version, size):
    """One packet from the service, checked."""
    try:
        kind = Kind(first >> 4)
    except ValueError:
        raise Violation(f"packet type {first >> 4} does not exist") from None
    flags = first & 0x0F
    if kind != Kind.PUBLISH and flags != (2 if kind == Kind.PUBREL else 0):
        raise Violation(f"[MQTT-2.1.3-1] {kind.name} has the flags {flags:04b}")
    body = _Body(data)
    found = Packet(kind, version, size)
    match kind:
        case Kind.CONNACK:
            acknowledge = body.number(1)
            if acknowledge > 1:
                raise Violation(f"[MQTT-3.2.2-1] the acknowledge flags are {acknowledge:08b}")
            found.session_present = bool(acknowledge)
            found.reason = body.number(1)
            if version == 5:
                found.properties = body.properties(kind)
            elif found.reason > 5:
                raise Violation(f"[MQTT-3.2.2-6] return code {found.reason} does not exist in 3.1.1")
            if found.reason and found.session_present:
                raise Violation("[MQTT-3.2.2-6] a refusal says Session Present")
        case Kind.PUBLISH:
            found.duplicate, found.qos, found.retain = bool(flags & 8), flags >> 1 & 3, bool(flags & 1)
            if found.qos == 3:
                raise Violation("[MQTT-3.3.1-4] both QoS bits are set")
            if found.qos == 0 and found.duplicate:
                raise Violation("[MQTT-3.3.1-2] DUP is set at QoS 0")
            found.topic = body.text()
            if not found.topic or set(found.topic) & set("+#"):
                raise Violation(f"[MQTT-3.3.2-2] the topic name is {found.topic!r}")
            if found.qos:
                found.packet_id = body.number(2)
            if version == 5:
                found.properties = body.properties(kind)
            found.payload = body.rest()
        case Kind.PUBACK | Kind.PUBREL | Kind.PUBCOMP | Kind.DISCONNECT if version == 5:
            if kind != Kind.DISCONNECT:
                found.packet_id = body.number(2)
            if body.at < len(data):
                found.reason = body.number(1)
            if body.at < len(data):
                found.properties = body.properties(kind)
        case Kind.PUBACK | Kind.PUBREL | Kind.PUBCOMP:
            found.packet_id = body.number(2)
        case Kind.SUBACK | Kind.UNSUBACK:
            found.packet_id = body.number(2)
            if version == 5:
                found.properties = body.properties(kind)
            found.reasons = tuple(body.rest()) if version == 5 or kind == Kind.SUBACK else ()
            if version == 4 and set(found.reasons) - {0, 1, 2, 0x80}:
                raise Violation(f"[MQTT-3.9.3-2] the return codes are {found.reasons}")
        case Kind.PINGRESP:
            pass
        case _:
            raise Violation(f"a server of this contract does not send {kind.name} in version {version}")
    if body.at != len(data):
        raise Violation(f"{kind.name} has {len(data) - body.at} bytes too many: {data.hex()}")
    if found.packet_id == 0:
        raise Violation(f"[MQTT-2.2.1-4] {kind.name} has the packet identifier 0")
    if version == 5:
        for reason in found.reasons or (found.reason,):
            if reason not in REASONS.get(kind, {0}):
                raise Violation(f"{kind.name} has no reason code 0x{reason:02x}")
    return found
