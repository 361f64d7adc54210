"""Attacks on the provider API that are made of HTTP/2 itself.

Of each: the attacker is cut off within ten seconds, an honest provider is served all the while, and the service grows no
larger than its limits say (what was measured is printed: `pytest -s`). The frames are made with hyperframe and hpack, which know no more of the service than an attacker does.
"""

import itertools
import pathlib
import select
import ssl
import struct
import threading
import time

import hpack
import pytest
from hyperframe import frame as frames

from parties import assert_accepted
from provider import connect_tls, tls_context
from service import PATIENCE, TOPIC

MIB = 1 << 20
#: Attacks for a time to be as short as it is to be: a machine that pauses breaks it now and then, a service that is held up always.
TRIES = 3


class Attacker:
    """A connection that sends frames as fast as they are taken."""

    def __init__(self, service, certificate, settings=None):
        self.socket = connect_tls(service.listeners["api"], tls_context(service.ca, certificate))
        self.received = b""
        #: The time until the service closed the connection.
        self.took = None
        hello = frames.SettingsFrame(0, settings=settings or {})
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hello.serialize())

    def flood(self, pieces, seconds, reads=True):
        begin = time.monotonic()
        is_over = self._flood(pieces, seconds, reads)
        if is_over:
            self.took = time.monotonic() - begin
        return is_over

    def _flood(self, pieces, seconds, reads):
        """Sends until the service closes the connection, and says whether it did; when there is nothing more to send
        it waits for that."""
        self.socket.setblocking(False)
        pending = b""
        end = time.monotonic() + seconds
        with self.socket:
            while (left := end - time.monotonic()) > 0:
                pending = pending or b"".join(itertools.islice(pieces, 200))
                progress = False
                try:
                    if pending:
                        sent = self.socket.send(pending)
                        pending, progress = pending[sent:], sent > 0
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
                except OSError:
                    return True
                try:
                    if reads or not pending:
                        data = self.socket.recv(65536)
                        if not data:
                            return True
                        self.received += data
                        progress = True
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
                except OSError:
                    return True
                if not progress:
                    wanted = [self.socket] if reads or not pending else []
                    select.select(wanted, [self.socket] if pending else [], [], min(left, 0.5))
        return False

    def error_codes(self):
        """The codes of the GOAWAY frames that came."""
        codes, rest = [], self.received
        while len(rest) >= 9:
            length = int.from_bytes(rest[:3], "big")
            if rest[3] == 7:
                codes.append(struct.unpack(">I", rest[13:17])[0])
            rest = rest[9 + length :]
        return codes


def header_block(token="00" * 32, encoder=None, **more):
    fields = {
        ":method": "POST", ":scheme": "https", ":path": f"/3/device/{token}", ":authority": "localhost", "apns-topic": TOPIC,
    } | more
    return (encoder or hpack.Encoder()).encode([(name, value) for name, value in fields.items() if value is not None])


def headers(stream, block, *flags):
    return frames.HeadersFrame(stream, block, flags=flags).serialize()


def data(stream, body=b"", *flags):
    return frames.DataFrame(stream, body, flags=flags).serialize()


# A block that refers to nothing, so that it can be sent as often as one likes.
PLAIN = bytes.fromhex("838704") + bytes([73]) + b"/3/device/" + b"0" * 63 + bytes.fromhex("0109") + b"localhost"


def pings():
    return itertools.repeat(frames.PingFrame(0, b"12345678").serialize(), 200_000)


def settings():
    return itertools.repeat(frames.SettingsFrame(0, settings={3: 100}).serialize(), 200_000)


def priorities():
    return (frames.PriorityFrame(2 * n + 1, 0, 16).serialize() for n in range(200_000))


def window_updates():
    return itertools.repeat(frames.WindowUpdateFrame(0, 1).serialize(), 200_000)


def unknown_frames():
    return itertools.repeat(b"\x00\x00\x04\xfa\x00\x00\x00\x00\x00abcd", 200_000)


def empty_data():
    return itertools.chain([headers(1, PLAIN, "END_HEADERS")], itertools.repeat(data(1), 200_000))


def empty_headers():
    """Trailers that carry nothing, one block after another."""
    return itertools.chain(
        [headers(1, PLAIN, "END_HEADERS")], itertools.repeat(headers(1, b"", "END_HEADERS"), 200_000)
    )


def rapid_resets():
    """CVE-2023-44487."""
    for stream in range(1, 200_000, 2):
        yield headers(stream, PLAIN, "END_HEADERS") + data(stream, b"{}", "END_STREAM")
        yield frames.RstStreamFrame(stream, 8).serialize()


def made_resets_by_windows():
    """CVE-2025-8671: a stream's window is opened beyond what there is, so that the service resets it."""
    for stream in range(1, 200_000, 2):
        yield headers(stream, PLAIN, "END_HEADERS") + frames.WindowUpdateFrame(stream, 0x7FFFFFFF).serialize()


def made_resets_by_malformed_requests():
    """CVE-2025-8671 with requests that have no path."""
    block = bytes.fromhex("8387")
    for stream in range(1, 200_000, 2):
        yield headers(stream, block, "END_HEADERS", "END_STREAM")


def made_resets_by_data_after_the_end():
    for stream in range(1, 200_000, 2):
        yield headers(stream, PLAIN, "END_HEADERS", "END_STREAM") + data(stream, b"late")


def continuations():
    """CERT VU#421644: a header block without end."""
    yield headers(1, PLAIN)
    yield from itertools.repeat(frames.ContinuationFrame(1, b"\x40\x01x\x01y" * 20).serialize(), 100_000)


def empty_continuations():
    yield headers(1, PLAIN)
    yield from itertools.repeat(frames.ContinuationFrame(1, b"").serialize(), 200_000)


def hpack_bombs():
    """A field of almost the whole table, then blocks of nothing but references to it: 16 KiB that mean 60 MiB."""
    encoder = hpack.Encoder()
    yield headers(1, header_block(encoder=encoder, **{"x-bomb": "b" * 3900}), "END_HEADERS", "END_STREAM")
    for stream in range(3, 20_000, 2):
        yield headers(stream, PLAIN + b"\xbe" * 16_000, "END_HEADERS", "END_STREAM")


def large_headers():
    """Fields that nobody wants, just below the largest frame."""
    block = PLAIN + b"".join(b"\x00\x01x\x7f\x81\x1f" + b"y" * 4096 for _ in range(3))
    for stream in range(1, 100_000, 2):
        yield headers(stream, block, "END_HEADERS", "END_STREAM")


ATTACKS = [
    pings, settings, priorities, window_updates, unknown_frames, empty_data, empty_headers, rapid_resets,
    made_resets_by_windows, made_resets_by_malformed_requests, made_resets_by_data_after_the_end, continuations,
    empty_continuations, hpack_bombs,
]


def resident(service):
    """The service's memory, in bytes."""
    text = pathlib.Path(f"/proc/{service.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) * 1024


def serve_while(parties, attack):
    """Prepares an attack, begins it, and serves an honest provider meanwhile; returns what the attack returned.

    Fails if the service grew, or the provider waited until the attack was over, and longer than a flood may take to be noticed.
    """
    for _ in range(TRIES):
        result, held = served_while(parties, attack())
        if held < 5:
            return result
    raise AssertionError(f"an honest provider waited {held:.1f} s, until the attack was over")


def served_while(parties, attack):
    """Runs the attack on a thread and an honest provider on this one.

    Returns what the attack returned, and the wait of the provider's request that was under way at the end of it.
    """
    service = parties.service
    with parties.provider() as provider:
        assert_accepted(provider.push(parties.token))
        before = resident(service)
        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(attack()), daemon=True)
        thread.start()
        peak = 0
        waits = []
        while thread.is_alive() or not waits:
            start = time.monotonic()
            assert_accepted(provider.push(parties.token))
            waits.append(time.monotonic() - start)
            peak = max(peak, resident(service))
        assert_accepted(provider.push(parties.token))
        assert provider.goaways == []
    middle, slowest = sorted(waits)[len(waits) // 2], max(waits)
    print(f"\nhonest p50 {middle * 1000:.1f} ms, slowest {slowest * 1000:.0f} ms of {len(waits)}; "
          f"grew by {(peak - before) / MIB:.1f} of {before / MIB:.0f} MiB")
    assert peak - before < 64 * MIB, f"the service grew by {(peak - before) / MIB:.0f} MiB"
    (result,) = outcome
    return result, waits[-1]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_a_flood_closes_the_connection(parties, attack):
    attackers = []

    def flood():
        attackers.append(Attacker(parties.service, parties.certificate))
        return lambda: attackers[-1].flood(attack(), seconds=2 * PATIENCE)

    for _ in range(TRIES):
        assert serve_while(parties, flood), "the attacker was not cut off"
        print(f"{attack.__name__}: closed after {attackers[-1].took:.2f} s")
        if attackers[-1].took <= 10:
            break
    assert min(attacker.took for attacker in attackers) <= 10
    # Enhance your calm, or the error that the frames are; never "no error".
    assert not any(0 in attacker.error_codes() for attacker in attackers)


@pytest.mark.parametrize("attack", [pings, settings, rapid_resets], ids=lambda attack: attack.__name__)
def test_a_flood_without_reading_closes_the_connection(parties, attack):
    def flood():
        attacker = Attacker(parties.service, parties.certificate)
        return lambda: attacker.flood(attack(), seconds=2 * PATIENCE, reads=False)

    assert serve_while(parties, flood), "the attacker was not cut off"


@pytest.mark.parametrize("attack", [pings, rapid_resets, hpack_bombs], ids=lambda attack: attack.__name__)
def test_a_flood_of_an_unknown_provider_closes_the_connection(parties, attack):
    def flood():
        attacker = Attacker(parties.service, None)
        return lambda: attacker.flood(attack(), seconds=2 * PATIENCE)

    assert serve_while(parties, flood), "the attacker was not cut off"


def test_large_headers_are_discarded_after_reading(parties):
    def flood():
        attacker = Attacker(parties.service, parties.certificate)
        return lambda: attacker.flood(itertools.islice(large_headers(), 2000), seconds=5)

    serve_while(parties, flood)


@pytest.mark.slow
@pytest.mark.parametrize("certificate", [True, False])
def test_unread_answers_are_not_buffered_without_limit(parties, certificate):
    """A window of zero for every stream: the answers' bodies cannot be sent."""

    def requests():
        for stream in range(1, 6001, 2):
            yield headers(stream, PLAIN, "END_HEADERS") + data(stream, b"{}", "END_STREAM")

    def flood():
        attacker = Attacker(parties.service, parties.certificate if certificate else None, settings={4: 0})
        return lambda: attacker.flood(requests(), seconds=2 * PATIENCE)

    assert serve_while(parties, flood), "the attacker was not cut off"
