"""Garbage sent to each listener ends in a refusal or a time-out, and harms no other connection."""

import contextlib
import json
import pathlib
import random
import select
import socket
import ssl
import time
import urllib.error
import urllib.request

import pytest
from hyperframe import frame as frames

from parties import assert_accepted
from provider import Disconnected, Provider, connect_tls, tls_context
from service import PATIENCE, eventually, herald

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = frames.SettingsFrame(0).serialize()
chance = random.Random(20261121)


@pytest.fixture(autouse=True)
def unharmed(parties):
    """After each test the same process serves as before, and holds no more descriptors."""
    service = parties.service
    before = descriptors(service)
    yield
    assert service.process.poll() is None, "the service is gone"
    with parties.provider() as provider:
        assert_accepted(provider.push(parties.token))
    eventually(lambda: descriptors(service) <= before, timeout=PATIENCE, what="the release of all descriptors")


def descriptors(service):
    return len(list(pathlib.Path(f"/proc/{service.pid}/fd").iterdir()))


def read_to_end(connection, timeout=PATIENCE):
    """The bytes that the service sends until it closes the connection."""
    connection.settimeout(timeout)
    said = b""
    try:
        while piece := connection.recv(65536):
            said += piece
    except TimeoutError:
        raise AssertionError(f"the connection is still open after {timeout} s") from None
    except OSError:
        pass
    return said


def send_to_end(connection, data):
    """Sends, and reads until the service closes."""
    with connection:
        with contextlib.suppress(OSError):
            connection.sendall(data)
        return read_to_end(connection)


@pytest.fixture(params=["api", "binary", "feedback", "console"])
def listener(request, parties):
    return parties.service.listeners[request.param]


NOISE = [
    chance.randbytes(1), chance.randbytes(100), chance.randbytes(100_000), b"\x00" * 1000, b"\xff" * 1000,
    b"\x16\x03\x01\xff\xff" + chance.randbytes(70_000), b"\x16\x03\x01\x00\x00" * 5000, b"\x80\x2e\x01\x00\x02" + bytes(41),
    PREFACE + SETTINGS, b"\x10\x0c\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00", b"SSH-2.0-x\r\n", b"\r\n" * 10_000,
]


@pytest.mark.parametrize("noise", NOISE, ids=lambda noise: f"{noise[:6].hex()}-{len(noise)}")
def test_noise_before_the_handshake_ends_the_connection(listener, noise):
    connection = socket.create_connection(("127.0.0.1", listener))
    with contextlib.suppress(OSError):
        connection.sendall(noise)
        connection.shutdown(socket.SHUT_WR)
    with connection:
        assert b"200" not in read_to_end(connection)


def test_plain_http_on_the_api_is_refused(parties):
    connection = socket.create_connection(("127.0.0.1", parties.service.listeners["api"]))
    said = send_to_end(connection, b"POST /3/device/00 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
    assert b"200" not in said


INSIDE = {
    "noise": chance.randbytes(5000),
    "zeroes": b"\x00" * 5000,
    "HTTP/1.1": b"POST /3/device/00 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    "an upgrade": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n",
    "MQTT": b"\x10\x0c\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00",
    "a preface with a mistake": PREFACE[:-1] + b"x",
    "a preface without SETTINGS": PREFACE + frames.PingFrame(0, b"12345678").serialize() * 5,
    "noise after the preface": PREFACE + SETTINGS + chance.randbytes(5000),
    "a frame longer than allowed": PREFACE + SETTINGS + b"\xff\xff\xff\x00\x01\x00\x00\x00\x01" + bytes(20_000),
    "SETTINGS of five bytes": PREFACE + b"\x00\x00\x05\x04\x00\x00\x00\x00\x00" + bytes(5),
    "SETTINGS out of range": PREFACE + frames.SettingsFrame(0, settings={4: 0xFFFFFFFF}).serialize(),
    "HEADERS on stream 0": PREFACE + SETTINGS + b"\x00\x00\x01\x01\x05\x00\x00\x00\x00\x83",
    "HEADERS on an even stream": PREFACE + SETTINGS + b"\x00\x00\x01\x01\x05\x00\x00\x00\x02\x83",
    "an HPACK index beyond the table": PREFACE + SETTINGS + b"\x00\x00\x02\x01\x05\x00\x00\x00\x01\xff\x7f",
    "an HPACK number without end": PREFACE + SETTINGS + b"\x00\x00\x0b\x01\x05\x00\x00\x00\x01" + b"\xff" * 11,
    "PUSH_PROMISE": PREFACE + SETTINGS + b"\x00\x00\x05\x05\x04\x00\x00\x00\x01\x00\x00\x00\x02\x83",
    "CONTINUATION of nothing": PREFACE + SETTINGS + frames.ContinuationFrame(1, b"\x83").serialize(),
    "GOAWAY": PREFACE + SETTINGS + frames.GoAwayFrame(0, error_code=1, additional_data=b"x" * 9000).serialize(),
}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("alpn", [("h2",), ()], ids=["h2", "no-alpn"])
def test_noise_after_the_handshake_ends_the_connection(parties, name, alpn):
    context = tls_context(parties.service.ca, parties.certificate, alpn)
    connection = connect_tls(parties.service.listeners["api"], context)
    with contextlib.suppress(OSError):
        connection.sendall(INSIDE[name])
        if name == "GOAWAY":
            # Not garbage, but the end all the same.
            connection = connection.unwrap()
    said = send_to_end(connection, b"")
    assert b"HTTP/1.1 200" not in said


class TestOversizedHeaders:
    @pytest.mark.parametrize("size", [9_000, 15_000])
    def test_an_unknown_long_field_is_accepted_or_refused(self, parties, size):
        with parties.provider() as provider:
            answer = provider.push(parties.token, headers=[("x-large", "y" * size)])
            assert answer.status == 200 or answer.reset is not None or answer.status >= 400

    @pytest.mark.parametrize("headers", [[("x-large", "y" * 60_000)], [(f"x-{n}", "y" * 500) for n in range(100)]])
    def test_far_too_large_headers_are_refused(self, parties, headers):
        with parties.provider() as provider:
            try:
                answer = provider.push(parties.token, headers=headers)
            except Disconnected:
                return
            assert answer.status >= 400 or answer.reset is not None

    def test_a_long_value_in_any_field_is_refused(self, parties):
        long = "9" * 3000
        with parties.provider("key") as provider:
            for name in ("id", "expiration", "priority", "push_type", "collapse_id", "topic"):
                assert provider.push(parties.token, **{name: long}).status == 400
            assert provider.push(parties.token, authorization=f"bearer {long}").status == 403
            assert_accepted(provider.push(parties.token))


class TestOldCertificates:
    def test_an_expired_certificate_is_refused(self, fresh):
        service = fresh().start()
        certificate = service.provider_certificate()
        service.stop()
        service.options = ["--clock", "+3650d"]
        service.start()
        with pytest.raises((Disconnected, ssl.SSLError, ConnectionError, AssertionError)):
            with Provider(service, certificate) as provider:
                assert provider.push("00").status != 400

    def test_a_revoked_certificate_is_refused_in_a_resumed_session(self, parties):
        service = parties.service
        certificate = service.provider_certificate("com.example.resumed")
        context = tls_context(service.ca, certificate, version=ssl.TLSVersion.TLSv1_2)
        with connect_tls(service.listeners["api"], context) as connection:
            session = connection.session
        listed = herald("provider", "list", "--data", service.data, "--json").stdout
        (id,) = [entry["id"] for entry in json.loads(listed) if entry["topics"] == ["com.example.resumed"]]
        herald("provider", "revoke", "--data", service.data, id)
        plain = socket.create_connection(("127.0.0.1", service.listeners["api"]))
        try:
            connection = context.wrap_socket(plain, server_hostname="localhost", session=session)
        except (ssl.SSLError, ConnectionError):
            return
        said = send_to_end(connection, PREFACE + SETTINGS)
        assert b'{"reason":"BadCertificate"}' in said or not said


class TestConsole:
    def ask(self, parties, path, **headers):
        request = urllib.request.Request(f"http://127.0.0.1:{parties.service.listeners['console']}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_health_is_public_and_the_rest_needs_a_token(self, parties):
        assert self.ask(parties, "/health") == 200
        assert self.ask(parties, "/metrics") == 200
        assert self.ask(parties, "/v1/devices") == 401
        assert self.ask(parties, "/v1/devices", authorization="Bearer wrong") == 401
        token = (parties.service.data / "run" / "admin.token").read_text().strip()
        assert self.ask(parties, "/v1/devices", authorization=f"Bearer {token}") == 200

    @pytest.mark.parametrize("path", ["/../../etc/passwd", "/%00", "/" + "x" * 9000, "/v1/credentials/../x/revoke"])
    def test_odd_paths_are_not_found(self, parties, path):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            assert self.ask(parties, path) in (400, 401, 404, 405, 414)


def test_a_cut_connection_is_released(parties):
    """Sockets that are reset in every phase, by the hundred."""
    port = parties.service.listeners["api"]
    context = tls_context(parties.service.ca, parties.certificate)
    for n in range(100):
        if n % 2:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(b"\x16\x03\x01")
        else:
            connection = connect_tls(port, context)
            connection.sendall(PREFACE + SETTINGS + b"\x00\x00\x20\x01"[: n % 5])
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.close()


@pytest.mark.slow
def test_silent_connections_are_closed(parties):
    """Plain TCP, half a handshake, TLS and silence, half a preface, half a request."""
    port = parties.service.listeners["api"]
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    for connection in silent[10:]:
        connection.sendall(bytes.fromhex("16030100fa010000f60303"))
    context = tls_context(parties.service.ca, parties.certificate)
    shaken = [connect_tls(port, context) for _ in range(4)]
    shaken[1].sendall(PREFACE[:10])
    shaken[2].sendall(PREFACE + SETTINGS + b"\x00\x00\x40\x01\x04\x00\x00\x00\x01" + b"\x83\x87")
    shaken[3].sendall(PREFACE)
    waiting = {connection.fileno(): connection for connection in silent + shaken}
    end = time.monotonic() + 2 * PATIENCE
    while waiting and time.monotonic() < end:
        for descriptor in select.select(list(waiting), [], [], 1)[0]:
            connection = waiting[descriptor]
            try:
                if not connection.recv(65536):
                    del waiting[descriptor]
            except ssl.SSLWantReadError:
                pass
            except OSError:
                del waiting[descriptor]
    names = ["plain"] * 10 + ["half a handshake"] * 10 + ["silence", "half a preface", "half a request", "no SETTINGS"]
    open_still = [name for name, connection in zip(names, silent + shaken, strict=True) if connection.fileno() in waiting]
    for connection in silent + shaken:
        connection.close()
    assert not open_still


@pytest.mark.slow
def test_an_endless_body_is_timed_out(parties):
    with parties.provider() as provider:
        stream = provider.send(parties.token, b'{"aps":', end=False)
        answer = provider.answer(stream, timeout=PATIENCE)
        assert answer.reset is not None or answer.status >= 400
        assert_accepted(provider.push(parties.token))


def test_a_slow_but_complete_request_is_served(parties):
    """A request in pieces of one byte."""
    with parties.provider() as provider:
        provider.wait_for_settings()
        sent = []
        real, provider.socket = provider.socket, None

        class Dribble:
            def sendall(self, data):
                for byte in data:
                    real.sendall(bytes([byte]))
                sent.append(len(data))

            def __getattr__(self, name):
                return getattr(real, name)

        provider.socket = Dribble()
        assert_accepted(provider.push(parties.token))
        assert sum(sent) > 100
