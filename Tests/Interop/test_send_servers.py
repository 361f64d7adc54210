"""`herald send`, and so the client library, against servers that are not Herald: nghttpd, and bad days on the `h2` package."""

import contextlib
import socket
import ssl
import subprocess
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from certificates import Authority
from commands import one_line
from service import TOPIC, eventually, herald

TOKEN = "0a" * 32
ID = "apns-id"


@pytest.fixture
def trust(tmp_path):
    """An authority, a server's certificate for localhost, and one that a client shows."""
    authority = Authority.strange("somebody's authority")
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    server = authority.issue(
        tmp_path / "server.pem", subject="localhost", names=[x509.DNSName("localhost")],
        usages=[ExtendedKeyUsageOID.SERVER_AUTH],
    )
    return ca, server, authority.issue(tmp_path / "client.pem", subject="provider")


class Connection:
    """One connection of a scripted service: an h2 connection, and what it received."""

    def __init__(self, stream, settings):
        self.stream = stream
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.h2.update_settings(settings)
        self.requests = []
        self.flush()

    def flush(self):
        self.stream.sendall(self.h2.data_to_send())

    def request(self):
        """Waits for a whole request: its stream and fields; None at the end of the connection."""
        while True:
            data = self.stream.recv(65536)
            if not data:
                return None
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.requests.append((event.stream_id, dict(event.headers)))
                if isinstance(event, h2.events.StreamEnded):
                    self.flush()
                    return self.requests[-1]
            self.flush()

    def accept(self, stream, fields):
        self.h2.send_headers(stream, [(":status", "200"), (ID, fields[ID])], end_stream=True)
        self.flush()


class Scripted:
    """A service that treats each connection as its script says; the last one as often as need be."""

    def __init__(self, certificate, scripts, settings=None):
        self.scripts = list(scripts)
        self.settings = settings or {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 100}
        self.seen = []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        self.context.set_alpn_protocols(["h2"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self.listener.accept()
                with contextlib.suppress(OSError), self.context.wrap_socket(accepted, server_side=True) as stream:
                    stream.settimeout(20)
                    script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                    connection = Connection(stream, self.settings)
                    script(connection)
                    self.seen += [fields for _, fields in connection.requests]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        # What waits in accept() is woken by the shutdown, not by the close.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(timeout=10)


def accepts(connection):
    while request := connection.request():
        connection.accept(*request)


def says_goaway_first(connection):
    """GOAWAY that disowns the request it has read, and the end."""
    connection.request()
    connection.h2.close_connection(last_stream_id=0)
    connection.flush()


def refuses_the_credential(connection):
    connection.request()
    connection.h2.close_connection(last_stream_id=0, additional_data=b'{"reason":"BadCertificateEnvironment"}')
    connection.flush()


def refuses_the_stream_once(connection):
    stream, _ = connection.request()
    connection.h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
    connection.flush()
    accepts(connection)


def hangs_up(connection):
    connection.request()


def send(port, trust, *options):
    ca, _, client = trust
    return herald(
        "send", TOKEN, "--service", f"localhost:{port}", "--ca", ca, "--topic", TOPIC, "--certificate", client,
        "--alert", "hi", *options, check=False,
    )


@pytest.mark.parametrize("script", [accepts, refuses_the_stream_once])
def test_a_notification_is_accepted(trust, script):
    with Scripted(trust[1], [script]) as service:
        result = send(service.port, trust)
        assert result.returncode == 0, result.stderr
    assert {fields[":path"] for fields in service.seen} == {f"/3/device/{TOKEN}"}
    assert len({fields[ID] for fields in service.seen}) == 1


def test_what_a_goaway_disowns_moves_to_another_connection(trust):
    with Scripted(trust[1], [says_goaway_first, accepts]) as service:
        result = send(service.port, trust)
        assert result.returncode == 0, result.stderr
    assert len(service.seen) == 2
    assert service.seen[0][ID] == service.seen[1][ID]


def test_what_may_have_arrived_is_not_sent_again(trust):
    with Scripted(trust[1], [hangs_up]) as service:
        assert "closed the connection" in one_line(send(service.port, trust))
    assert len(service.seen) == 1


def test_a_goaway_that_says_why_is_told(trust):
    with Scripted(trust[1], [refuses_the_credential]) as service:
        assert "BadCertificateEnvironment" in one_line(send(service.port, trust))
    assert len(service.seen) == 1


def test_a_stream_limit_that_comes_late_is_obeyed(trust):
    def opens_late(connection):
        connection.h2.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1})
        connection.flush()
        accepts(connection)

    with Scripted(trust[1], [opens_late], {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 0}) as service:
        result = send(service.port, trust)
        assert result.returncode == 0, result.stderr


def test_a_service_that_does_not_take_the_certificate_says_so(trust, shared):
    """With TLS 1.3 its alert comes after the handshake."""
    said = one_line(send(shared.doors["api"], (shared.ca, *trust[1:])))
    assert said.endswith("refuses the provider's certificate: it is of no authority that is trusted there"), said


def test_a_port_without_tls_and_a_name_without_an_address_are_told(trust, shared):
    assert "speaks no TLS" in one_line(send(shared.doors["console"], trust))
    result = herald("send", TOKEN, "--service", "nowhere.invalid:2197", "--ca", trust[0], "--topic", TOPIC, "--certificate",
                    trust[2], "--alert", "hi", check=False)
    assert "nobody knows an address of nowhere.invalid" in one_line(result)


def test_a_failure_of_something_in_between_is_no_refusal(trust):
    """A proxy that gave up may have passed the request on."""
    def fails(connection):
        stream, _ = connection.request()
        connection.h2.send_headers(stream, [(":status", "502")])
        connection.h2.send_data(stream, b"<html>Bad Gateway</html>", end_stream=True)
        connection.flush()

    with Scripted(trust[1], [fails]) as service:
        assert "status 502 without a reason" in one_line(send(service.port, trust))
    assert len(service.seen) == 1


def test_a_server_that_is_no_push_service_is_told(trust, tmp_path):
    """nghttpd, which answers 404."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(["nghttpd", "-d", tmp_path, str(port), trust[1], trust[1]])
    try:
        def listens():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return True
        assert eventually(listens)
        assert "no push service" in one_line(send(port, trust))
    finally:
        server.terminate()
        server.wait(timeout=10)
