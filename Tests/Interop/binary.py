"""The binary provider interface and the feedback service as a client of bare bytes sees them, on Python's `ssl`."""

import contextlib
import socket
import ssl
import struct
import time

from provider import connect_tls, tls_context
from service import PATIENCE

PAYLOAD = b'{"aps":{"alert":"hi"}}'
BAD_TOKEN = "00" * 32


def simple(token, payload=PAYLOAD):
    """Command 0."""
    token = bytes.fromhex(token)
    return struct.pack(">BH", 0, len(token)) + token + struct.pack(">H", len(payload)) + payload


def enhanced(identifier, token, payload=PAYLOAD, expiry=0xFFFFFFFF):
    """Command 1."""
    token = bytes.fromhex(token)
    head = struct.pack(">BIIH", 1, identifier, expiry, len(token))
    return head + token + struct.pack(">H", len(payload)) + payload


def frame(*items):
    """Command 2, of these items."""
    body = b"".join(struct.pack(">BH", number, len(content)) + content for number, content in items)
    return struct.pack(">BI", 2, len(body)) + body


def framed(identifier, token, payload=PAYLOAD, expiry=None, priority=None):
    """Command 2, as most clients send it."""
    items = [(1, bytes.fromhex(token)), (2, payload)]
    if identifier is not None:
        items.append((3, struct.pack(">I", identifier)))
    if expiry is not None:
        items.append((4, struct.pack(">I", expiry)))
    if priority is not None:
        items.append((5, bytes([priority])))
    return frame(*items)


class Binary:
    """One connection to the gateway of the binary interface."""

    def __init__(self, service, certificate=None, *, name="localhost", alpn=(), listener="binary", timeout=PATIENCE):
        self.service = service
        self.socket = connect_tls(service.listeners[listener], tls_context(service.ca, certificate, alpn), name, timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def answer(self):
        """(status, identifier) of the error response, None if there is none; then the connection must end in order."""
        data = self.rest()
        if not data:
            return None
        assert len(data) == 6, data.hex()
        command, status, identifier = struct.unpack(">BBI", data)
        assert command == 8
        return status, identifier

    def rest(self):
        """All that comes until the service ends TLS; an end without close_notify, or a reset, is an error."""
        self.socket.suppress_ragged_eofs = False
        data = b""
        while part := self.socket.recv(65536):
            data += part
        return data

    def is_silent(self, seconds=0.3):
        """Whether nothing comes, and the connection stays."""
        self.socket.settimeout(seconds)
        try:
            data = self.socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(PATIENCE)
        raise AssertionError(f"the service said {data!r}, or closed")

    def reset(self):
        """Ends TCP as a system does for a program that died with something unread."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        plain = self.socket.detach()
        socket.socket(fileno=plain).close()


def feedback(service, certificate, name="localhost"):
    """All tuples of the feedback service: (seconds, token in hex)."""
    with Binary(service, certificate, name=name, listener="feedback") as reader:
        data = reader.rest()
    tuples = []
    while data:
        seconds, length = struct.unpack(">IH", data[:6])
        assert length == 32
        assert len(data) >= 6 + length, "a tuple is cut off"
        tuples.append((seconds, data[6 : 6 + length].hex()))
        data = data[6 + length :]
    return tuples


def accepted(service, topic, what="received"):
    """The identifiers in the journal of a topic, in order: they are the last eight digits of the apns-id."""
    lines = service.journal("--topic", topic, "--limit", "10000")
    return [int(line["id"][-8:], 16) for line in lines if line["state"] == what]


def wait_for_end(connection, timeout=PATIENCE):
    """Reads until the service closes, in whatever way."""
    end = time.monotonic() + timeout
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        while connection.socket.recv(65536):
            assert time.monotonic() < end
