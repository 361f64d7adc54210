"""A push service on the `h2` package that treats each connection as a script says."""

import collections
import contextlib
import json
import socket
import ssl
import struct
import threading

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from certificates import Authority
from service import PATIENCE

ID = "apns-id"


@pytest.fixture
def trust(tmp_path):
    """An authority, a server's certificate for localhost, and one that a client shows."""
    authority = Authority.foreign("somebody's authority")
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    server = authority.issue(
        tmp_path / "server.pem", subject="localhost", names=[x509.DNSName("localhost")],
        usages=[ExtendedKeyUsageOID.SERVER_AUTH],
    )
    client = authority.issue(tmp_path / "client.pem", subject="provider")
    client.chmod(0o600)
    return ca, server, client


class Connection:
    """One connection of a scripted service: an h2 connection, and what it received."""

    def __init__(self, stream, settings):
        self.stream = stream
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.h2.update_settings(settings)
        #: All requests that began: stream and fields.
        self.requests = []
        self._whole = collections.deque()
        self.flush()

    def flush(self):
        self.stream.sendall(self.h2.data_to_send())

    def request(self):
        """Waits for a whole request: its stream and fields; None at the end of the connection."""
        while not self._whole:
            data = self.stream.recv(65536)
            if not data:
                return None
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.requests.append((event.stream_id, dict(event.headers)))
                if isinstance(event, h2.events.StreamEnded):
                    self._whole.append(next(request for request in self.requests if request[0] == event.stream_id))
            self.flush()
        return self._whole.popleft()

    def accept(self, stream, fields):
        self.h2.send_headers(stream, [(":status", "200"), (ID, fields[ID])], end_stream=True)
        self.flush()

    def refuse(self, stream, fields, status, **body):
        self.h2.send_headers(stream, [(":status", str(status)), (ID, fields[ID])])
        self.h2.send_data(stream, json.dumps(body).encode(), end_stream=True)
        self.flush()


class Scripted:
    """A service that treats each connection as its script says; the last one as often as need be."""

    def __init__(self, certificate, scripts, settings=None):
        self.scripts = list(scripts)
        self.settings = settings or {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 100}
        self.connections = []
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
                    stream.settimeout(PATIENCE)
                    script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                    connection = Connection(stream, self.settings)
                    self.connections.append(connection)
                    script(connection)

    @property
    def seen(self):
        """The fields of all requests."""
        return [fields for connection in self.connections for _, fields in connection.requests]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        # shutdown() wakes a thread that waits in accept(); close() does not.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(timeout=10)


def accepts(connection):
    while request := connection.request():
        connection.accept(*request)


def resets(count):
    """A script that reads so many requests, and resets the connection without an answer."""
    def script(connection):
        for _ in range(count):
            connection.request()
        connection.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return script
