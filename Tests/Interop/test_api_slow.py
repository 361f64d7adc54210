"""Clients of the provider API that take their time, one by one or by the thousand.

Of each: the slow one is let go within its time, an honest provider is served all the while, and the service grows no larger
than its limits say. What was measured is printed (`pytest -s`); docs/threat-model.md has the figures of one run.
"""

import contextlib
import selectors
import socket
import time

import pytest

from parties import assert_accepted
from provider import connect_tls, tls_context
from service import eventually
from test_api_floods import MIB, PLAIN, data, headers, resident

HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


class Crowd:
    """Many connections, looked at on one thread: when each was closed by the service."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.open = set()
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
        """The same to everybody who is still there."""
        for connection in list(self.open):
            with contextlib.suppress(BlockingIOError):
                try:
                    connection.send(bytes)
                except OSError as error:
                    if not isinstance(error, BlockingIOError) and "WANT" not in str(type(error)):
                        self._end(connection)

    def look(self):
        """Reads what came, and notes who was let go."""
        for key, _ in self.selector.select(0):
            try:
                while key.fileobj.recv(65536):
                    pass
            except OSError as error:
                if isinstance(error, BlockingIOError) or "Want" in type(error).__name__:
                    continue
            self._end(key.fileobj)

    def _end(self, connection):
        if connection in self.open:
            self.open.discard(connection)
            self.selector.unregister(connection)
            connection.close()
            self.ended.append(time.monotonic() - self.begun)


def serve_honestly(parties, seconds, meanwhile):
    """Pushes one after another while something goes on; returns the waits, sorted, and how much the service grew."""
    with parties.provider() as provider:
        assert_accepted(provider.push(parties.token))
        before = peak = resident(parties.service)
        waits = []
        end = time.monotonic() + seconds
        while time.monotonic() < end and meanwhile():
            start = time.monotonic()
            assert_accepted(provider.push(parties.token))
            waits.append(time.monotonic() - start)
            peak = max(peak, resident(parties.service))
            time.sleep(0.01)
        assert provider.goaways == []
    return sorted(waits), peak - before


def tell(what, crowd, waits, growth):
    last = f", the last let go after {max(crowd.ended):.1f} s" if crowd.ended else ""
    print(f"\n{what}: honest p50 {waits[len(waits) // 2] * 1000:.1f} ms, p99 {waits[len(waits) * 99 // 100] * 1000:.0f} ms"
          f" of {len(waits)}, service grew by {growth / MIB:.1f} MiB{last}")


PHASES = {
    # What a client says before it falls silent, and how soon it is let go: the limit, and the second of the wheel.
    "handshake": (None, 10),
    "preface": (b"", 5),
    "half a preface": (HELLO[:12], 5),
    "half a header block": (HELLO + headers(1, PLAIN), 10),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_hundred_that_fall_silent_are_let_go_in_time(parties, phase):
    said, limit = PHASES[phase]
    context = tls_context(parties.service.ca, parties.certificate)
    with Crowd() as crowd:
        for _ in range(100):
            if said is None:
                crowd.add(socket.create_connection(("127.0.0.1", parties.service.doors["api"])))
            else:
                connection = connect_tls(parties.service.doors["api"], context)
                connection.sendall(said)
                crowd.add(connection)
        opened = time.monotonic() - crowd.begun

        def meanwhile():
            crowd.look()
            return bool(crowd.open)

        waits, growth = serve_honestly(parties, limit + 15, meanwhile)
        tell(f"100 silent after {phase}", crowd, waits, growth)
        assert not crowd.open
        assert max(crowd.ended) < opened + limit + 9
    assert waits[-1] < 5
    assert growth < 64 * MIB


def test_a_hundred_bodies_of_a_byte_a_second_leave_the_service_to_others(parties):
    context = tls_context(parties.service.ca, parties.certificate)
    with Crowd() as crowd:
        for _ in range(100):
            connection = connect_tls(parties.service.doors["api"], context)
            connection.sendall(HELLO + headers(1, PLAIN, "END_HEADERS"))
            crowd.add(connection)
        last = [0.0]

        def meanwhile():
            if time.monotonic() - last[0] >= 1:
                last[0] = time.monotonic()
                crowd.send(data(1, b"x"))
            crowd.look()
            return True

        waits, growth = serve_honestly(parties, 12, meanwhile)
        tell("100 bodies of a byte a second", crowd, waits, growth)
    assert waits[-1] < 5
    assert growth < 64 * MIB


def test_a_body_of_a_byte_a_second_is_given_ten_seconds(parties):
    with parties.provider() as provider:
        begin = time.monotonic()
        stream = provider.send(parties.token, b"{", end=False)
        while not provider.answers[stream].ended and time.monotonic() - begin < 30:
            provider.h2.send_data(stream, b" ")
            provider.flush()
            with contextlib.suppress(TimeoutError):
                provider.pump(lambda: provider.answers[stream].ended, 1)
        assert provider.answers[stream].reset == 8
        assert 9 < time.monotonic() - begin < 20
        assert_accepted(provider.push(parties.token))


def test_ten_thousand_streams_at_once_are_held_and_served(parties):
    providers = [parties.provider() for _ in range(20)]
    before = resident(parties.service)
    streams = []
    for provider in providers:
        provider.wait_for_settings()
        streams.append([provider.send(parties.token, b'{"aps":', end=False) for _ in range(500)])
        provider.ping()
    growth = resident(parties.service) - before
    with parties.provider() as honest:
        start = time.monotonic()
        assert_accepted(honest.push(parties.token))
        wait = time.monotonic() - start
    answered = reset = 0
    for provider, opened in zip(providers, streams, strict=True):
        for stream in opened:
            if not provider.answers[stream].ended:
                provider.send_body(stream, b"{}}")
        for stream in opened:
            answer = provider.answer(stream)
            answered += answer.status == 200
            # Python takes its time as well: what waited for its body longer than ten seconds was reset.
            reset += answer.reset == 8
        assert provider.goaways == []
        provider.close()
    print(f"\n10,000 streams: +{growth / MIB:.1f} MiB, another provider waits {wait * 1000:.1f} ms, {answered} answered")
    assert answered + reset == 10_000 and answered > 0
    assert growth < 128 * MIB
    assert wait < 5


def test_thousands_of_connections_that_say_nothing_keep_nobody_out(parties):
    with Crowd() as crowd:
        for _ in range(3000):
            crowd.add(socket.create_connection(("127.0.0.1", parties.service.doors["api"])))

        def meanwhile():
            crowd.look()
            return bool(crowd.open)

        waits, growth = serve_honestly(parties, 40, meanwhile)
        tell("3,000 silent connections", crowd, waits, growth)
        assert not crowd.open
    assert waits[-1] < 5
    assert growth < 128 * MIB


@pytest.mark.slow
def test_memory_comes_back_after_a_crowd(parties):
    """What a crowd needed is given back, some seconds after it went."""
    context = tls_context(parties.service.ca, parties.certificate)
    before = resident(parties.service)
    peaks = []
    for _ in range(5):
        with Crowd() as crowd:
            for _ in range(200):
                connection = connect_tls(parties.service.doors["api"], context)
                connection.sendall(HELLO + b"".join(headers(n, PLAIN, "END_HEADERS") for n in range(1, 400, 2)))
                crowd.add(connection)
            with parties.provider() as provider:
                assert_accepted(provider.push(parties.token))
            peaks.append(resident(parties.service))
        eventually(lambda: resident(parties.service) < before + 32 * MIB, what="the memory of before")
    sizes = " ".join(f"{peak / MIB:.0f}" for peak in peaks)
    print(f"\n{before / MIB:.0f} MiB before, with each crowd of 200 × 200 streams: {sizes} MiB")
    assert max(peaks) < before + 128 * MIB
