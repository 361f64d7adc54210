"""Slow clients of the provider API, one by one or by the thousand.

Each slow client is disconnected, an honest provider is served while the others are held, and the service grows no larger than
its limits say. What was measured is printed (`pytest -s`); docs/threat-model.md has the figures of one run. The length of each
time limit is a matter of the unit tests, which move the clock.
"""

import collections
import contextlib
import selectors
import socket
import time

import hpack
import pytest
from hyperframe import frame as frames

from parties import assert_accepted
from provider import connect_tls, tls_context
from refusals import refused
from service import PATIENCE, eventually
from test_api_floods import MIB, PLAIN, data, header_block, headers, resident

HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"

#: How a frame begins that resets the first request.
RESET = b"\x00\x00\x04\x03\x00\x00\x00\x00\x01"
#: Crowds for one that is held long enough: a machine that pauses looks too late, and a service that is blocked always answers late.
TRIES = 5


class Crowd:
    """Many connections, looked at on one thread: when the service closed each, or reset its request."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.open = set()
        self.said = collections.defaultdict(bytes)
        self.begun = time.monotonic()
        self.ended = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.open:
            connection.close()
        self.selector.close()

    def add(self, connection):
        connection.setblocking(False)
        self.open.add(connection)
        self.selector.register(connection, selectors.EVENT_READ)

    def send(self, bytes):
        """Sends the same bytes on every open connection."""
        for connection in list(self.open):
            with contextlib.suppress(BlockingIOError):
                try:
                    connection.send(bytes)
                except OSError as error:
                    if not isinstance(error, BlockingIOError) and "WANT" not in str(type(error)):
                        self._end(connection)

    def look(self):
        """Reads new data, and notes the connections that are held no more."""
        for key, _ in self.selector.select(0):
            if self._is_over(key.fileobj):
                self._end(key.fileobj)

    def _is_over(self, connection):
        try:
            while piece := connection.recv(65536):
                self.said[connection] += piece
        except OSError as error:
            if isinstance(error, BlockingIOError) or "Want" in type(error).__name__:
                return RESET in self.said[connection]
        return True

    def _end(self, connection):
        if connection in self.open:
            self.open.discard(connection)
            self.selector.unregister(connection)
            connection.close()
            self.ended.append(time.monotonic() - self.begun)


def serve_honestly(parties, crowd, meanwhile):
    """Connects and pushes one after another until the crowd is gone.

    Returns the waits for the answers that came before that, and the service's growth.
    """
    start = time.monotonic()
    with parties.provider() as provider:
        waits = []
        before = peak = None
        # The crowd is bound to go: this is longer than any machine takes for it.
        end = start + 3 * PATIENCE
        while time.monotonic() < end:
            assert_accepted(provider.push(parties.token))
            wait = time.monotonic() - start
            before = before or resident(parties.service)
            peak = max(peak or 0, resident(parties.service))
            meanwhile(crowd)
            crowd.look()
            if not crowd.open:
                break
            waits.append(wait)
            time.sleep(0.01)  # pace: one sample in ten milliseconds
            start = time.monotonic()
        assert provider.goaways == []
    return waits, peak - before


def assert_served_beside(parties, what, fill, largest=64 * MIB, meanwhile=lambda crowd: None):
    """Asserts that a new provider gets its answers while the crowd is held, and that the service lets all of the crowd go."""
    for _ in range(TRIES):
        with Crowd() as crowd:
            fill(crowd)
            waits, growth = serve_honestly(parties, crowd, meanwhile)
            tell(what, crowd, sorted(waits), growth)
            assert not crowd.open, f"{len(crowd.open)} are still open"
        assert growth < largest
        if len(waits) > 10:
            return
    raise AssertionError("an honest provider was not served before the service had let the others go")


def tell(what, crowd, waits, growth):
    last = f", the last let go after {max(crowd.ended):.1f} s" if crowd.ended else ""
    if not waits:
        return print(f"\n{what}: no honest answer meanwhile{last}")
    print(f"\n{what}: honest p50 {waits[len(waits) // 2] * 1000:.1f} ms, p99 {waits[len(waits) * 99 // 100] * 1000:.0f} ms"
          f" of {len(waits)}, service grew by {growth / MIB:.1f} MiB{last}")


PHASES = {
    # The bytes that a client sends before it falls silent.
    "handshake": None,
    "preface": b"",
    "half a preface": HELLO[:12],
    "half a header block": HELLO + headers(1, PLAIN),
}


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_a_hundred_silent_connections_are_closed_in_time(parties, phase):
    said = PHASES[phase]
    context = tls_context(parties.service.ca, parties.certificate)
    unknown = refused(parties.service, "provider API", "unknown")

    def fill(crowd):
        for _ in range(100):
            if said is None:
                crowd.add(socket.create_connection(("127.0.0.1", parties.service.listeners["api"])))
            else:
                connection = connect_tls(parties.service.listeners["api"], context)
                # The service may have closed it by now, on a machine that pauses.
                with contextlib.suppress(OSError):
                    connection.sendall(said)
                crowd.add(connection)

    assert_served_beside(parties, f"100 silent after {phase}", fill)
    # The time limit of the phase closed them; the next one, 30 s for the client to become known, closed none.
    assert refused(parties.service, "provider API", "unknown") == unknown


@pytest.mark.slow
def test_a_hundred_slow_bodies_do_not_delay_others(parties):
    context = tls_context(parties.service.ca, parties.certificate)
    last = [0.0]

    def fill(crowd):
        for _ in range(100):
            connection = connect_tls(parties.service.listeners["api"], context)
            with contextlib.suppress(OSError):
                connection.sendall(HELLO + headers(1, PLAIN, "END_HEADERS"))
            crowd.add(connection)

    def trickle(crowd):
        if time.monotonic() - last[0] >= 1:
            last[0] = time.monotonic()
            crowd.send(data(1, b"x"))

    # Each body is given ten seconds; then its request is reset.
    assert_served_beside(parties, "100 bodies of a byte a second", fill, meanwhile=trickle)


@pytest.mark.slow
def test_a_slow_body_is_reset_after_ten_seconds(parties):
    with parties.provider() as provider:
        begin = time.monotonic()
        stream = provider.send(parties.token, b"{", end=False)
        while not provider.answers[stream].ended and time.monotonic() - begin < 2 * PATIENCE:
            provider.h2.send_data(stream, b" ")
            provider.flush()
            with contextlib.suppress(TimeoutError):
                provider.pump(lambda: provider.answers[stream].ended, 1)
        assert provider.answers[stream].reset == 8
        # That it is reset at all shows that its bytes buy no time.
        assert 9 < time.monotonic() - begin
        assert_accepted(provider.push(parties.token))


class Streams:
    """A connection with many requests whose bodies have begun, in frames that are made once: Python is slow at making them."""

    NUMBERS = range(1, 1001, 2)

    def __init__(self, parties):
        context = tls_context(parties.service.ca, parties.certificate)
        self.socket = connect_tls(parties.service.listeners["api"], context)
        block = header_block(parties.token)
        begun = (headers(number, block, "END_HEADERS") + data(number, b'{"aps":') for number in self.NUMBERS)
        self.socket.sendall(HELLO + b"".join(begun) + frames.PingFrame(0, b"all sent").serialize())
        self.decoder = hpack.Decoder()
        self.unread = b""
        #: The status of each request that was answered; None if it was reset.
        self.ended = {}
        self.is_pinged = self.is_disowned = False

    def finish(self):
        self.read_until(lambda: self.is_pinged)
        self.socket.sendall(b"".join(data(number, b"{}}", "END_STREAM") for number in self.NUMBERS if number not in self.ended))
        self.read_until(lambda: len(self.ended) == len(self.NUMBERS))
        self.socket.close()

    def read_until(self, condition):
        while not condition():
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError(f"the service closed the connection after {len(self.ended)} answers")
            self.unread += piece
            while len(self.unread) >= 9 and len(self.unread) >= (end := 9 + int.from_bytes(self.unread[:3], "big")):
                self.take(self.unread[3], int.from_bytes(self.unread[5:9], "big"), self.unread[9:end])
                self.unread = self.unread[end:]

    def take(self, kind, stream, body):
        match kind:
            case 1:
                self.ended[stream] = dict(self.decoder.decode(body))[":status"]
            case 3:
                self.ended[stream] = None
            case 6:
                self.is_pinged = True
            case 7:
                self.is_disowned = True


def test_ten_thousand_streams_at_once_are_held_and_served(parties):
    # Streams that wait for their bodies longer than ten seconds are reset, and 200 resets end a connection: on a machine
    # that pauses, all of them once.
    held = 0
    for _ in range(3):
        with contextlib.suppress(ConnectionError):
            held = held or ten_thousand_streams(parties)
    assert held, "no stream was held while another provider was answered"


def ten_thousand_streams(parties):
    """The number of the streams that succeeded, each of which was held while another provider was answered."""
    before = resident(parties.service)
    crowd = [Streams(parties) for _ in range(20)]
    for streams in crowd:
        streams.read_until(lambda: streams.is_pinged)
    growth = resident(parties.service) - before
    with parties.provider() as honest:
        start = time.monotonic()
        assert_accepted(honest.push(parties.token))
        wait = time.monotonic() - start
    # The youngest first.
    for streams in reversed(crowd):
        streams.finish()
    ended = collections.Counter(status for streams in crowd for status in streams.ended.values())
    print(f"\n10,000 streams: +{growth / MIB:.1f} MiB, another provider waits {wait * 1000:.1f} ms, {ended}")
    assert ended["200"] + ended[None] == 10_000
    assert not any(streams.is_disowned for streams in crowd)
    assert growth < 128 * MIB
    return ended["200"]


@pytest.mark.slow
def test_thousands_of_silent_connections_do_not_block_others(parties):
    def fill(crowd):
        for _ in range(3000):
            crowd.add(socket.create_connection(("127.0.0.1", parties.service.listeners["api"])))

    assert_served_beside(parties, "3,000 silent connections", fill, largest=128 * MIB)


@pytest.mark.slow
def test_memory_is_released_after_a_crowd(parties, rounds):
    """The memory that a crowd needed is released some seconds after it has gone."""
    context = tls_context(parties.service.ca, parties.certificate)
    before = resident(parties.service)
    peaks = []
    for _ in rounds:
        with Crowd() as crowd:
            for _ in range(200):
                connection = connect_tls(parties.service.listeners["api"], context)
                connection.sendall(HELLO + b"".join(headers(n, PLAIN, "END_HEADERS") for n in range(1, 400, 2)))
                crowd.add(connection)
            with parties.provider() as provider:
                assert_accepted(provider.push(parties.token))
            peaks.append(resident(parties.service))
        eventually(lambda: resident(parties.service) < before + 32 * MIB, what="the memory of before")
    rounds.report(before=f"{before / MIB:.0f} MiB", largest=f"{max(peaks) / MIB:.0f} MiB")
    assert max(peaks) < before + 128 * MIB
