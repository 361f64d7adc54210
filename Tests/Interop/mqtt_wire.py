"""One TLS connection to the device listener, for valid and invalid packets.

This is not a client: it says only what it is told to. All waiting is reading with a deadline.
"""

import socket
import ssl
import time

from mqtt_packets import PINGREQ, Kind, Violation, read_packet
from service import PATIENCE


class Closed(Exception):
    """The service closed the connection while the test waited for a packet."""


class Silence(Exception):
    """Nothing came before the deadline."""


def tls_context(ca, certificate=None, version=None):
    """The TLS context of a device; `version` is an ssl.TLSVersion."""
    context = ssl.create_default_context(cafile=str(ca))
    if certificate:
        context.load_cert_chain(str(certificate))
    if version:
        context.minimum_version = context.maximum_version = version
    return context


class Wire:
    """One TLS connection to the device listener."""

    def __init__(self, port, context, *, version=5, name="localhost", host="127.0.0.1", timeout=PATIENCE, session=None):
        self.version = version
        self.timeout = timeout
        self.maximum_packet_size = None
        self._bytes = bytearray()
        plain = socket.create_connection((host, port), timeout=timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.socket = context.wrap_socket(plain, server_hostname=name, session=session)
        except BaseException:
            plain.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the connection without DISCONNECT, like a device that loses its network."""
        self.socket.close()

    def send(self, *packets):
        """Sends bytes unchanged; later reads show the service's reaction."""
        try:
            self.socket.sendall(b"".join(packets))
        except (ssl.SSLError, ConnectionError):
            # The last bytes of the service can still be read after its close.
            pass

    def read(self, timeout=None):
        """The next packet. Raises Closed or Silence, and Violation for what no server may send."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        first = self._take(1, end)[0]
        size, shift = 0, 0
        while True:
            digit = self._take(1, end)[0]
            size |= (digit & 0x7F) << shift
            if digit < 0x80:
                break
            shift += 7
            if shift > 21:
                raise Violation("[MQTT-1.5.5-1] the remaining length has more than four bytes")
        if shift and digit == 0:
            raise Violation("[MQTT-1.5.5-1] the remaining length has more bytes than it needs")
        whole = 1 + shift // 7 + 1 + size
        if self.maximum_packet_size and whole > self.maximum_packet_size:
            raise Violation(f"[MQTT-3.1.2-24] a packet of {whole} bytes is larger than {self.maximum_packet_size}")
        return read_packet(first, bytes(self._take(size, end)), self.version, whole)

    def _take(self, count, end):
        while len(self._bytes) < count:
            left = end - time.monotonic()
            if left <= 0:
                raise Silence("nothing came in time")
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                continue
            except (ssl.SSLError, ConnectionError) as error:
                raise Closed(str(error)) from error
            finally:
                self.socket.settimeout(self.timeout)
            if not data:
                raise Closed("the service closed the connection")
            self._bytes += data
        part = self._bytes[:count]
        del self._bytes[:count]
        return part

    def read_if_begun(self, seconds=0.005):
        """The next packet, if its first byte comes within some seconds; else None."""
        if not self._bytes:
            try:
                self._bytes[:0] = self._take(1, time.monotonic() + seconds)
            except Silence:
                return None
        return self.read()

    def expect(self, kind, timeout=None):
        """The next packet, which is of this kind."""
        found = self.read(timeout)
        assert found.kind == kind, f"expected {kind.name}, and {found} came"
        return found

    def until_closed(self, timeout=None):
        """Reads until the service closes the connection, and returns all packets that came before."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        packets = []
        while True:
            try:
                packets.append(self.read(end - time.monotonic()))
            except Closed:
                return packets
            except Silence:
                raise AssertionError(f"the connection is not closed; what came: {packets}") from None

    def refused(self, *reasons, kind=None, timeout=None):
        """Reads until the service closes the connection, having given one of these reasons last.

        In 3.1.1 a server says nothing about a connection that it had accepted (MQTT 3.1.1 §4.8).
        """
        packets = self.until_closed(timeout)
        if kind is None:
            kind = Kind.DISCONNECT
        if self.version != 5 and kind == Kind.DISCONNECT:
            assert not [found for found in packets if found.kind == kind]
            return packets
        assert packets and packets[-1].kind == kind, f"closed without {kind.name}: {packets}"
        named = " or ".join(f"0x{reason:02x}" for reason in reasons)
        assert packets[-1].reason in reasons, f"reason 0x{packets[-1].reason:02x}, not {named}"
        return packets

    def shut(self, *reasons, timeout=None):
        """Reads until the service closes the connection; if it gave a reason, then one of these.

        For a faulty CONNECT, after which a server may say nothing ([MQTT-4.13.1-1]), and never a DISCONNECT
        ([MQTT-3.14.0-1]).
        """
        packets = self.until_closed(timeout)
        assert [found.kind for found in packets] in ([], [Kind.CONNACK]), f"closed after {packets}"
        assert all(found.reason in reasons for found in packets), f"not for this reason: {packets}"

    def refused_after(self, seconds, *reasons, since):
        """Waits to be refused for one of these reasons, as `refused` does, and not before so many seconds have passed
        since a moment: that is when what let them begin was sent, or earlier.
        """
        packets = self.refused(*reasons)
        spent = time.monotonic() - since
        assert spent >= seconds, f"refused after {spent:.2f} s, not {seconds}"
        return packets

    def quiet(self, seconds=0.15):
        """Asserts that nothing comes for some seconds."""
        try:
            found = self.read(seconds)
        except Silence:
            return
        raise AssertionError(f"nothing was to come, and {found} came")

    def ping(self):
        """Sends a PINGREQ; returns what came before its answer."""
        self.send(PINGREQ)
        before = []
        while (found := self.read()).kind != Kind.PINGRESP:
            before.append(found)
        return before
