"""One HTTP/2 connection to the provider API, from which each request goes when the one before is answered."""

import socket
import ssl
import time

import h2.config
import h2.connection
import h2.events

from loads import PAYLOAD_BYTES


def payload():
    """Of the form that the load reads: 1, and the monotonic clock in eighteen digits of nanoseconds."""
    head = '{"t":1%018d,"aps":{"alert":"' % time.monotonic_ns()
    return (head + "x" * (PAYLOAD_BYTES - len(head) - 3) + '"}}').encode()


class ProviderConnection:
    """`ask` sends a request and returns the answer's fields; `bearer` is a provider's token."""

    def __init__(self, herald, bearer):
        self.bearer = "bearer " + bearer
        context = ssl.create_default_context(cafile=str(herald.ca))
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", herald.port("api")))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()

    def push(self, token, topic, expiration):
        """One notification that says when it was sent."""
        self.ask(f"/3/device/{token}", payload(), ("apns-topic", topic), ("apns-push-type", "alert"), ("apns-priority", "10"),
                 ("apns-expiration", str(expiration)))

    def ask(self, path, body, *fields):
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"),
                                      (":path", path), ("authorization", self.bearer), *fields])
        self.h2.send_data(stream, body, end_stream=True)
        self.socket.sendall(self.h2.data_to_send())
        answer = {}
        while True:
            received = self.socket.recv(65536)
            if not received:
                raise ConnectionError("the service closed the connection")
            for event in self.h2.receive_data(received):
                if isinstance(event, h2.events.ResponseReceived):
                    answer = dict(event.headers)
                if isinstance(event, h2.events.StreamEnded):
                    if answer[":status"] not in ("200", "201"):
                        raise RuntimeError(f"{path} was answered {answer}")
                    return answer
            self.socket.sendall(self.h2.data_to_send())
