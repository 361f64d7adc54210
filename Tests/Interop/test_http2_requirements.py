"""The requirements of RFC 9113, sections 4 to 8, on a server: `docs/compatibility.md` lists each with its test.

Every case breaks or uses one rule with bare frames over TLS. A second connection goes on working all the while.
"""

import hpack
import pytest

from provider import connect_tls, tls_context
from service import PATIENCE, TOPIC

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, HAS_PRIORITY, ACK = 1, 4, 8, 0x20, 1
NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED, FRAME_SIZE_ERROR = 0, 1, 3, 5, 6
REFUSED_STREAM, CANCEL, COMPRESSION_ERROR = 7, 8, 9
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = range(1, 6)
#: The flags that each type defines.
FLAGS = {DATA: 9, HEADERS: 0x2D, RST_STREAM: 0, SETTINGS: 1, PING: 1, GOAWAY: 0, WINDOW_UPDATE: 0, CONTINUATION: 4}
LARGEST = 2**31 - 1
#: A push to a token that is none: the answer is 400, with a body, at once.
PUSH = {
    ":method": "POST", ":scheme": "https", ":path": "/3/device/00", ":authority": "localhost", "apns-topic": TOPIC,
}
REFUSAL = b'{"reason":"BadDeviceToken"}'


def frame(type, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([type, flags]) + number(stream) + payload


def number(value):
    return value.to_bytes(4, "big")


def setting(identifier, value):
    return identifier.to_bytes(2, "big") + number(value)


def block(fields=None, **changes):
    """A header block that refers to no table; `fields` are pairs, or those of a push with changes."""
    fields = list((PUSH | changes).items()) if fields is None else fields
    literals = b""
    for field in fields:
        literals += b"\0"
        for text in field:
            text = text if isinstance(text, bytes) else text.encode()
            assert len(text) < 127
            literals += bytes([len(text)]) + text
    return literals


def headers(stream, fields=None, flags=END_HEADERS, **changes):
    return frame(HEADERS, flags, stream, block(fields, **changes))


def data(stream, body=b"{}", flags=END_STREAM):
    return frame(DATA, flags, stream, body)


def request(stream, fields=None):
    return headers(stream, fields) + data(stream)


def bodyless(stream):
    return headers(stream, flags=END_HEADERS | END_STREAM)


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, number(code))


def update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, number(increment))


class Wire:
    """A connection of bare frames, which checks every frame that it reads (§4.1, §5.1, §8.3.2)."""

    def __init__(self, service, certificate, settings=b""):
        self.socket = connect_tls(service.listeners["api"], tls_context(service.ca, certificate))
        self.socket.settimeout(PATIENCE)
        self.decoder = hpack.Decoder()
        self.unread = b""
        self.ended = set()
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(SETTINGS, 0, 0, settings))
        self.first = self.read()
        self.read_until(lambda type, flags, *_: type == SETTINGS and flags & ACK)
        self.send(frame(SETTINGS, ACK))

    def send(self, *frames):
        self.socket.sendall(b"".join(frames))

    def receive(self, count):
        while len(self.unread) < count:
            part = self.socket.recv(65536)
            if not part:
                return None
            self.unread += part
        part, self.unread = self.unread[:count], self.unread[count:]
        return part

    def read(self):
        """The next frame: type, flags, stream, payload; None at the end of the connection."""
        head = self.receive(9)
        if head is None:
            return None
        payload = self.receive(int.from_bytes(head[:3], "big"))
        type, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        assert len(payload) <= 16_384
        assert flags & ~FLAGS[type] == 0 and stream <= LARGEST
        assert stream not in self.ended or type == RST_STREAM
        assert stream % 2 == 1 or type in (SETTINGS, PING, GOAWAY, WINDOW_UPDATE)
        if type == RST_STREAM or type in (DATA, HEADERS) and flags & END_STREAM:
            self.ended.add(stream)
        return type, flags, stream, payload

    def read_until(self, is_last):
        """The frames up to one; all, if the connection ends first."""
        frames = []
        while (next := self.read()) is not None:
            frames.append(next)
            if is_last(*next):
                break
        return frames

    def answer(self, stream):
        """The fields and the body of the answer on a stream."""
        frames = self.read_until(lambda *_: stream in self.ended)
        fields, body = None, b""
        for type, flags, of, payload in frames:
            assert type != GOAWAY, f"GOAWAY {payload}"
            if type == HEADERS:
                decoded = self.decoder.decode(payload)
                fields = decoded if of == stream else fields
            elif type == DATA and of == stream:
                body += payload
            elif type == RST_STREAM and of == stream:
                pytest.fail(f"RST_STREAM {payload}")
        names = [name for name, _ in fields]
        assert [name for name in names if name.startswith(":")] == [":status"] == names[:1]
        assert all(name == name.lower() for name in names) and "connection" not in names
        return dict(fields), body

    def refuses(self, stream):
        fields, body = self.answer(stream)
        assert (fields[":status"], body) == ("400", REFUSAL)

    def sync(self):
        """All frames that answer what was sent so far.

        The answer to a PING overtakes others that are not written yet, so that a second one is needed.
        """
        frames = []
        for number in (b"first...", b"second.."):
            self.send(frame(PING, 0, 0, number))
            frames += self.read_until(lambda type, flags, stream, payload: type == PING and payload == number)
            assert frames and frames.pop() == (PING, ACK, 0, number), f"the connection ended: {frames}"
        return frames

    def works(self, stream=101):
        """Asserts that the connection still serves requests."""
        self.sync()
        self.send(request(stream))
        self.refuses(stream)

    def breaks(self, code, *frames):
        """Asserts that frames are a connection error (§5.4.1): GOAWAY with the code, and the end of the connection."""
        self.send(*frames)
        goaways = [payload for type, *_, payload in self.read_until(lambda *_: False) if type == GOAWAY]
        assert [int.from_bytes(payload[4:8], "big") for payload in goaways] == [code]

    def is_reset(self, code, stream, *frames):
        """Asserts that frames are a stream error (§5.4.2): RST_STREAM with the code, and a connection that works."""
        self.send(*frames)
        seen = self.sync()
        resets = [(of, int.from_bytes(payload, "big")) for type, _, of, payload in seen if type == RST_STREAM]
        assert resets == [(stream, code)], seen
        self.works()


@pytest.fixture(scope="module")
def control(parties):
    """The connection that goes on working."""
    wire = Wire(parties.service, parties.certificate)
    wire.stream = -1
    with wire.socket:
        yield wire


@pytest.fixture
def connect(parties, control):
    """Makes connections, and checks at the end that the other one still works."""
    wires = []

    def connect(settings=b""):
        wires.append(Wire(parties.service, parties.certificate, settings))
        return wires[-1]

    yield connect
    for wire in wires:
        wire.socket.close()
    control.stream += 2
    control.send(request(control.stream))
    control.refuses(control.stream)


@pytest.fixture
def wire(connect):
    return connect()


cases = pytest.mark.parametrize


class TestFrames:
    """§4."""

    def test_frames_of_unknown_types_are_ignored(self, wire):
        wire.send(frame(0xFA, 0xFF, 0, b"abc"), headers(1), frame(0x42, 0xFF, 1, b"abc"), frame(10, 0, 7), data(1))
        wire.refuses(1)

    def test_undefined_flags_are_ignored(self, wire):
        wire.send(headers(1, flags=END_HEADERS | 0xD2), data(1, flags=END_STREAM | 0xF6))
        wire.refuses(1)
        wire.send(frame(PING, 0xFE, 0, b"abcdefgh"), frame(SETTINGS, 0xFE), frame(WINDOW_UPDATE, 0xFF, 0, number(1)))
        wire.works()

    def test_reserved_bits_are_ignored(self, wire):
        wire.send(headers(1 | 1 << 31), data(1 | 1 << 31))
        wire.refuses(1)
        wire.send(frame(PING, 0, 1 << 31, b"abcdefgh"), update(0, 1 | 1 << 31), frame(PRIORITY, 0, 5, number(3) + b"\0"))
        wire.works()

    def test_frames_of_16384_bytes_are_read(self, wire):
        wire.send(headers(1), data(1, b" " * 16_384, flags=0), data(1))
        fields, body = wire.answer(1)
        assert (fields[":status"], body) == ("413", b'{"reason":"PayloadTooLarge"}')
        wire.send(frame(HEADERS, END_HEADERS | PADDED, 3, b"\xff" + block() + bytes(255)), data(3))
        wire.refuses(3)

    @cases("late", [
        data(1, bytes(16_385)), frame(HEADERS, END_HEADERS, 3, bytes(16_385)), frame(SETTINGS, 0, 0, bytes(16_386)),
        frame(0xFA, 0, 0, bytes(16_385)), frame(HEADERS, END_HEADERS | HAS_PRIORITY, 3, b"abcd"),
        frame(HEADERS, END_HEADERS | HAS_PRIORITY | PADDED, 3, b"\0abcd"), frame(HEADERS, END_HEADERS | PADDED, 3),
        data(1, b"", PADDED),
    ], ids=["DATA", "HEADERS", "SETTINGS", "unknown", "no room for a priority", "no room for padding and priority",
            "no room for padding", "empty, padded"])
    def test_a_frame_of_a_wrong_size_is_a_frame_size_error(self, wire, late):
        wire.breaks(FRAME_SIZE_ERROR, headers(1), late)


class TestFieldBlocks:
    """§4.3."""

    @cases("bad", [b"\xff\xff\xff\xff\xff\xff", b"\x80", b"\xfe", b"\x00\x85abc", b"\x00\x81\xff\x00", b"\x3f\xe2\x1f"],
           ids=["an endless integer", "index 0", "no such index", "cut short", "bad Huffman code", "a larger table"])
    def test_a_block_that_cannot_be_decoded_is_a_compression_error(self, wire, bad):
        wire.breaks(COMPRESSION_ERROR, frame(HEADERS, END_HEADERS | END_STREAM, 1, block() + bad))

    @cases("between", [data(1), request(3), frame(PING, 0, 0, bytes(8)), frame(0xFA, 0, 0), frame(CONTINUATION, 4, 3),
                       reset(1), update(0, 1), frame(SETTINGS), frame(PRIORITY, 0, 1, number(3) + b"\0")],
           ids=["DATA", "another stream", "PING", "unknown", "CONTINUATION of another", "RST_STREAM", "WINDOW_UPDATE",
                "SETTINGS", "PRIORITY"])
    def test_a_frame_within_a_block_is_a_protocol_error(self, wire, between):
        start = frame(HEADERS, 0, 1, block())
        wire.breaks(PROTOCOL_ERROR, start, between, frame(CONTINUATION, END_HEADERS, 1))

    def test_a_block_in_several_frames_is_joined(self, wire):
        whole = block()
        wire.send(frame(HEADERS, 0, 1, whole[:7]), frame(CONTINUATION, 0, 1), frame(CONTINUATION, 0, 1, whole[7:9]))
        wire.send(frame(CONTINUATION, END_HEADERS, 1, whole[9:]), data(1))
        wire.refuses(1)

    def test_blocks_of_reset_streams_change_the_table(self, wire):
        # The stream is reset for its window; the block that is in flight adds ":path: /" to the table.
        wire.send(headers(1), update(1, LARGEST))
        assert [type for type, *_ in wire.sync()] == [RST_STREAM]
        path = PUSH[":path"].encode()
        wire.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x44" + bytes([len(path)]) + path))
        fields = [pair for pair in PUSH.items() if pair[0] != ":path"]
        wire.send(frame(HEADERS, END_HEADERS, 3, b"\xbe" + block(fields)), data(3))
        wire.refuses(3)

    def test_a_smaller_table_is_announced_in_the_next_block(self, connect):
        wire = connect()
        wire.send(request(1))
        wire.refuses(1)
        wire.send(frame(SETTINGS, 0, 0, setting(HEADER_TABLE_SIZE, 0)), request(3))
        (answer,) = [payload for type, _, stream, payload in wire.read_until(lambda *_: 3 in wire.ended)
                     if type == HEADERS]
        # A dynamic table size update (RFC 7541, section 6.3) to 0.
        assert answer[0] == 0x20


class TestStreamStates:
    """§5.1."""

    @cases("early", [data(1), reset(1), update(1, 1), frame(CONTINUATION, END_HEADERS, 1, block())],
           ids=["DATA", "RST_STREAM", "WINDOW_UPDATE", "CONTINUATION"])
    def test_a_frame_on_an_idle_stream_is_a_protocol_error(self, wire, early):
        wire.breaks(PROTOCOL_ERROR, early)

    @cases("late", [data(1), bodyless(1)], ids=["DATA", "HEADERS"])
    def test_a_frame_after_the_end_of_a_request_is_a_stream_closed_error(self, wire, late):
        wire.breaks(STREAM_CLOSED, bodyless(1), late)

    @cases("late", [data(1), data(1, b"", 0), bodyless(1), request(1)], ids=["DATA", "empty DATA", "HEADERS", "request"])
    def test_a_frame_on_a_closed_stream_is_a_stream_closed_error(self, wire, late):
        wire.send(bodyless(1))
        assert wire.answer(1)
        wire.breaks(STREAM_CLOSED, late)

    @cases("late", [data(1), data(1, b"", 0), bodyless(1), headers(1)], ids=["DATA", "empty DATA", "trailers", "HEADERS"])
    @cases("at_once", [True, False])
    def test_a_frame_after_a_reset_by_the_client_is_a_stream_closed_error(self, wire, late, at_once):
        wire.send(headers(1), reset(1))
        if not at_once:
            wire.sync()
        wire.breaks(STREAM_CLOSED, late)

    @cases("late", [frame(CONTINUATION, END_HEADERS, 1)], ids=["CONTINUATION"])
    def test_a_continuation_on_a_closed_stream_is_a_protocol_error(self, wire, late):
        wire.breaks(PROTOCOL_ERROR, headers(1), reset(1), late)

    def test_frames_in_flight_after_a_reset_by_herald_are_ignored(self, wire):
        # One burst, so that the reset is not even sent; then frames that follow it.
        late = data(1, flags=0) + frame(HEADERS, END_HEADERS | END_STREAM, 1, block([("x-trailer", "1")]))
        wire.is_reset(FLOW_CONTROL_ERROR, 1, headers(1), update(1, LARGEST), late)
        wire.send(late, update(1, 1), reset(1), frame(PRIORITY, 0, 1, number(0) + b"\0"))
        assert wire.sync() == []
        wire.works(103)

    def test_data_in_flight_after_a_reset_counts_for_the_window_of_the_connection(self, wire):
        wire.send(headers(1), update(1, LARGEST))
        assert [type for type, *_ in wire.sync()] == [RST_STREAM]
        # More than half of the window, which is 16 MiB.
        wire.send(data(1, bytes(16_384), flags=0) * 520)
        updates = [payload for type, _, stream, payload in wire.sync() if (type, stream) == (WINDOW_UPDATE, 0)]
        assert sum(int.from_bytes(payload, "big") for payload in updates) >= 8 * 2**20

    def test_frames_that_crossed_the_end_of_a_stream_are_ignored(self, wire):
        wire.send(request(1))
        wire.refuses(1)
        wire.send(update(1, 1), reset(1), update(1, LARGEST))
        assert wire.sync() == []
        wire.works()

    def test_priority_is_accepted_in_every_state(self, wire):
        def priority(stream):
            return frame(PRIORITY, 0, stream, number(0) + b"\x0f")

        wire.send(priority(1), headers(1), priority(1), data(1), priority(1))
        wire.refuses(1)
        wire.send(priority(1), priority(2), priority(4001), bodyless(3), reset(3), priority(3))
        wire.works()

    @cases("stream", [2, 4000])
    def test_a_request_on_an_even_stream_is_a_protocol_error(self, wire, stream):
        wire.breaks(PROTOCOL_ERROR, request(stream))

    @cases("stream", [1, 3])
    def test_a_smaller_stream_identifier_is_a_protocol_error(self, wire, stream):
        wire.breaks(PROTOCOL_ERROR, headers(5), bodyless(stream))

    def test_skipped_stream_identifiers_are_closed(self, wire):
        wire.send(request(9))
        wire.refuses(9)
        wire.breaks(PROTOCOL_ERROR, data(7))

    def test_no_reset_answers_a_reset(self, wire):
        wire.send(headers(1), reset(1), reset(1), headers(3), update(3, LARGEST), reset(3, PROTOCOL_ERROR))
        assert [stream for type, _, stream, _ in wire.sync() if type == RST_STREAM] in ([], [3])
        wire.works()


class TestFrameDefinitions:
    """§6."""

    @cases("bad", [
        data(0), frame(HEADERS, END_HEADERS, 0, block()), frame(PRIORITY, 0, 0, number(3) + b"\0"), reset(0),
        frame(CONTINUATION, END_HEADERS, 0),
    ], ids=["DATA", "HEADERS", "PRIORITY", "RST_STREAM", "CONTINUATION"])
    def test_a_frame_of_a_stream_on_stream_0_is_a_protocol_error(self, wire, bad):
        wire.breaks(PROTOCOL_ERROR, bad)

    @cases("bad", [frame(SETTINGS, 0, 1), frame(PING, 0, 1, bytes(8)), frame(GOAWAY, 0, 1, bytes(8))],
           ids=["SETTINGS", "PING", "GOAWAY"])
    def test_a_frame_of_the_connection_on_a_stream_is_a_protocol_error(self, wire, bad):
        wire.breaks(PROTOCOL_ERROR, headers(1), bad)

    @cases("bad", [frame(DATA, PADDED | END_STREAM, 1, b"\x05abcd"), frame(DATA, PADDED, 1, b"\x01"),
                   frame(HEADERS, PADDED | END_HEADERS, 3, bytes([200]) + block())[:-1] + b"a"],
           ids=["DATA", "DATA of padding only", "HEADERS"])
    def test_padding_beyond_the_frame_is_a_protocol_error(self, wire, bad):
        wire.breaks(PROTOCOL_ERROR, headers(1), bad)

    @cases("bad", [
        frame(PRIORITY, 0, 1, b"abcd"), frame(RST_STREAM, 0, 1, b"abc"), frame(RST_STREAM, 0, 1, b"abcde"),
        frame(SETTINGS, ACK, 0, setting(HEADER_TABLE_SIZE, 4096)), frame(SETTINGS, 0, 0, b"abcde"),
        frame(PING, 0, 0, b"abcdefg"), frame(PING, ACK, 0, b"abcdefghi"), frame(GOAWAY, 0, 0, b"abcdefg"),
        frame(WINDOW_UPDATE, 0, 0, b"abc"), frame(WINDOW_UPDATE, 0, 1, b"abcde"),
    ], ids=["PRIORITY", "RST_STREAM 3", "RST_STREAM 5", "SETTINGS ACK", "SETTINGS 5", "PING", "PING ACK", "GOAWAY",
            "WINDOW_UPDATE", "WINDOW_UPDATE of a stream"])
    def test_a_frame_of_a_wrong_length_is_a_frame_size_error(self, wire, bad):
        wire.breaks(FRAME_SIZE_ERROR, headers(1), bad)

    def test_a_stream_that_depends_on_itself_is_a_protocol_error(self, connect):
        itself = number(1) + b"\x0f"
        connect().breaks(PROTOCOL_ERROR, frame(PRIORITY, 0, 1, itself))
        connect().breaks(PROTOCOL_ERROR, frame(HEADERS, END_HEADERS | HAS_PRIORITY, 1, itself + block()))

    def test_the_first_frame_is_settings(self, wire):
        type, flags, stream, payload = wire.first
        assert (type, flags, stream, len(payload) % 6) == (SETTINGS, 0, 0, 0)
        identifiers = [int.from_bytes(payload[at : at + 2], "big") for at in range(0, len(payload), 6)]
        assert ENABLE_PUSH not in identifiers and len(set(identifiers)) == len(identifiers)

    def test_settings_are_acknowledged_in_order(self, wire):
        wire.send(frame(SETTINGS), frame(SETTINGS, 0, 0, setting(MAX_FRAME_SIZE, 20_000)), frame(SETTINGS))
        assert wire.sync() == [(SETTINGS, ACK, 0, b"")] * 3

    @cases("identifier, value, code", [
        (ENABLE_PUSH, 2, PROTOCOL_ERROR), (INITIAL_WINDOW_SIZE, 2**31, FLOW_CONTROL_ERROR),
        (MAX_FRAME_SIZE, 16_383, PROTOCOL_ERROR), (MAX_FRAME_SIZE, 2**24, PROTOCOL_ERROR),
    ])
    def test_a_setting_out_of_range_is_an_error(self, wire, identifier, value, code):
        wire.breaks(code, frame(SETTINGS, 0, 0, setting(identifier, value)))

    def test_unknown_settings_are_ignored(self, wire):
        wire.send(frame(SETTINGS, 0, 0, setting(0xFFFF, LARGEST) + setting(0, 0) + setting(7, 1)))
        wire.works()

    def test_the_last_of_two_values_of_a_setting_counts(self, wire):
        wire.send(frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, 0) + setting(INITIAL_WINDOW_SIZE, 5)), request(1))
        assert [payload for type, *_, payload in wire.sync() if type == DATA] == [REFUSAL[:5]]

    def test_a_push_promise_is_a_protocol_error(self, wire):
        wire.breaks(PROTOCOL_ERROR, headers(1), frame(PUSH_PROMISE, END_HEADERS, 1, number(2) + block()))

    def test_a_ping_is_answered_with_its_payload(self, wire):
        wire.send(frame(PING, 0, 0, b"one, two"), frame(PING, ACK, 0, b"no reply"))
        assert wire.sync() == [(PING, ACK, 0, b"one, two")]

    def test_requests_are_answered_after_a_goaway_of_the_client(self, wire):
        wire.send(headers(1), frame(GOAWAY, 0, 0, number(0) + number(NO_ERROR) + b"bye"), data(1))
        wire.refuses(1)

    @cases("code", [0xFF, 0xFFFFFFFF])
    def test_unknown_error_codes_have_no_effect(self, wire, code):
        wire.send(headers(1), reset(1, code), headers(3), frame(GOAWAY, 0, 0, number(0) + number(code)), data(3))
        wire.refuses(3)


class TestFlowControl:
    """§5.2, §6.9."""

    def test_a_body_waits_for_the_window_of_its_stream(self, connect):
        wire = connect(setting(INITIAL_WINDOW_SIZE, 0))
        wire.send(request(1))
        assert [type for type, *_ in wire.sync()] == [HEADERS]
        wire.send(update(1, 1))
        assert wire.sync() == [(DATA, 0, 1, REFUSAL[:1])]
        wire.send(update(1, 100))
        assert wire.sync() == [(DATA, END_STREAM, 1, REFUSAL[1:])]

    def test_a_body_waits_for_the_window_of_the_connection(self, connect):
        wire = connect(setting(INITIAL_WINDOW_SIZE, LARGEST))
        # More bodies than the window of 65,535 bytes has room for.
        count = 65_535 // len(REFUSAL) + 1
        for first in range(0, count, 200):
            wire.send(*(request(2 * index + 1) for index in range(first, min(first + 200, count))))
            frames = wire.sync()
        assert 2 * count - 1 not in wire.ended
        assert frames[-1][3] == REFUSAL[: 65_535 % len(REFUSAL)] or 65_535 % len(REFUSAL) == 0
        wire.send(update(0, 100))
        assert wire.sync()[-1][:3] == (DATA, END_STREAM, 2 * count - 1)

    def test_a_new_initial_window_changes_open_streams_also_below_zero(self, connect):
        wire = connect(setting(INITIAL_WINDOW_SIZE, 4))
        wire.send(request(1))
        assert wire.sync()[-1] == (DATA, 0, 1, REFUSAL[:4])
        wire.send(frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, 0)), update(1, 4))
        assert wire.sync() == [(SETTINGS, ACK, 0, b"")]
        wire.send(update(1, 2))
        assert wire.sync() == [(DATA, 0, 1, REFUSAL[4:6])]
        wire.send(frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, 100)))
        assert wire.sync()[-1] == (DATA, END_STREAM, 1, REFUSAL[6:])

    def test_an_increment_of_0_is_a_protocol_error(self, connect):
        connect().breaks(PROTOCOL_ERROR, update(0, 0))
        connect().breaks(PROTOCOL_ERROR, headers(1), update(1, 0))

    def test_a_window_that_overflows_is_a_flow_control_error(self, connect):
        connect().breaks(FLOW_CONTROL_ERROR, update(0, LARGEST))
        connect().is_reset(FLOW_CONTROL_ERROR, 1, headers(1), update(1, LARGEST))

    def test_an_initial_window_that_makes_a_window_overflow_resets_its_stream(self, wire):
        large = frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, LARGEST))
        wire.is_reset(FLOW_CONTROL_ERROR, 1, headers(1), update(1, 1), large)

    def test_more_data_than_the_window_of_a_stream_is_a_flow_control_error(self, wire):
        wire.is_reset(FLOW_CONTROL_ERROR, 1, headers(1), data(1, bytes(16_384), flags=0) * 4)


def malformed(*extra, **changes):
    """The fields of a push with changes (`_path` for `:path`; None leaves one out), and further ones."""
    changes = {name.replace("_", ":"): value for name, value in changes.items()}
    return [pair for pair in (PUSH | changes).items() if pair[1] is not None] + list(extra)


class TestMessages:
    """§8."""

    def is_malformed(self, wire, *frames):
        wire.is_reset(PROTOCOL_ERROR, 1, *frames)

    @cases("fields", [
        malformed(("Upper", "a")), malformed(("x y", "a")), malformed(("x:y", "a")), malformed(("x-\x01", "a")),
        malformed((b"x-\x7f", "a")), malformed((b"x-\xff", "a")), malformed(("x", "a\0b")), malformed(("x", "a\rb")),
        malformed(("x", "a\nb")), malformed(("x", " a")), malformed(("x", "a ")), malformed(("x", "\ta")),
    ], ids=lambda fields: repr(fields[-1]))
    def test_a_field_with_forbidden_characters_is_malformed(self, wire, fields):
        self.is_malformed(wire, request(1, fields))

    @cases("field", [
        ("connection", "close"), ("keep-alive", "1"), ("proxy-connection", "close"), ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"), ("te", "trailers, deflate"),
    ], ids=lambda field: field[0])
    def test_a_field_of_the_connection_is_malformed(self, wire, field):
        self.is_malformed(wire, request(1, malformed(field)))

    def test_te_trailers_is_accepted(self, wire):
        wire.send(request(1, malformed(("te", "trailers"))))
        wire.refuses(1)

    @cases("fields", [
        malformed((":unknown", "a")), malformed(_unknown="a"), malformed(_status="200"), malformed(_protocol="websocket"),
        [("apns-topic", TOPIC), *malformed()[:4]],
        *(malformed(**{name: None}) for name in ("_method", "_scheme", "_path")),
        *(malformed()[:4] + [(name, PUSH[name])] for name in (":method", ":scheme", ":path", ":authority")),
        malformed(_path=""), malformed(_path="3/device/00"), malformed(_path="*"), malformed(_scheme=""),
    ], ids=["unknown, last", "unknown", ":status", ":protocol", "after a field", "no :method", "no :scheme", "no :path",
            "two :method", "two :scheme", "two :path", "two :authority", "empty :path", "path without /", "path *",
            "empty :scheme"])
    def test_a_request_with_wrong_pseudo_header_fields_is_malformed(self, wire, fields):
        self.is_malformed(wire, request(1, fields))

    @cases("fields", [
        [(":method", "CONNECT")], [(":method", "CONNECT"), (":authority", "localhost"), (":scheme", "https")],
        [(":method", "CONNECT"), (":authority", "localhost"), (":path", "/")],
    ], ids=["no :authority", ":scheme", ":path"])
    def test_a_wrong_connect_is_malformed(self, wire, fields):
        self.is_malformed(wire, headers(1, fields))

    def test_a_pseudo_header_field_in_trailers_is_malformed(self, wire):
        trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, block([(":path", "/")]))
        self.is_malformed(wire, headers(1), data(1, flags=0), trailers)

    def test_trailers_that_do_not_end_the_request_are_malformed(self, wire):
        self.is_malformed(wire, headers(1), data(1, flags=0), headers(1, [("x-trailer", "1")]))

    @cases("length, bodies", [
        ("1", [b"{}"]), ("3", [b"{}"]), ("4", [b"{}", b"{}}"]), ("x", [b"{}"]), ("-2", [b"{}"]), ("2", []),
    ])
    def test_a_wrong_content_length_is_malformed(self, wire, length, bodies):
        fields = malformed(("content-length", length))
        if not bodies:
            return self.is_malformed(wire, headers(1, fields, flags=END_HEADERS | END_STREAM))
        *parts, last = bodies
        self.is_malformed(wire, headers(1, fields), *(data(1, part, flags=0) for part in parts), data(1, last))

    def test_a_malformed_field_with_a_reason_is_answered(self, wire):
        """§8.1.1 allows an answer instead of the reset alone."""
        wire.send(request(1, malformed(("apns-priority", "5\0"))))
        fields, body = wire.answer(1)
        assert (fields[":status"], body) == ("400", b'{"reason":"BadPriority"}')
        wire.works()
