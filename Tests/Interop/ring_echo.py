"""Rings between the nodes of a cluster, heard on a NATS server and sent again: late, repeated, and to nodes for which they were not."""

import collections
import contextlib
import re
import socket
import struct
import threading

from nats_servers import CLIENT
from service import PATIENCE, eventually

#: Rings that are kept to be sent again.
KEPT = 200
#: The subject of rings to all nodes.
ALL = "hrld.nodes.ring"


class Ring:
    """One message with rings: its bytes, and for each notification in it the place of its sequence."""

    def __init__(self, data):
        self.data = data
        # A frame: version, sender, question, part, parts. Then the rings: version, count.
        at = 2 + data[1] + 12
        (count,) = struct.unpack_from(">H", data, at + 1)
        at += 3
        #: The place of each sequence in the message, and the id of its notification.
        self.places = {}
        for _ in range(count):
            (size,) = struct.unpack_from(">I", data, at + 24)
            if found := re.search(rb'"id":"([^"]+)"', data[at + 28 : at + 28 + size]):
                self.places[found[1].decode()] = at + 16
            at += 28 + size

    def sequence(self, id):
        (sequence,) = struct.unpack_from(">Q", self.data, self.places[id])
        return sequence

    def with_sequence(self, sequence):
        """The same with another sequence, as if all in it had been stored then."""
        data = bytearray(self.data)
        for place in self.places.values():
            struct.pack_into(">Q", data, place, sequence)
        return bytes(data)


class RingEcho:
    """Hears all rings. With `chance`, each is followed by an old one, which goes to all nodes."""

    def __init__(self, server, chance=None):
        self.chance = chance
        self.rings = collections.deque(maxlen=KEPT)
        #: Old rings that were sent.
        self.sent = 0
        self._socket = socket.create_connection((server.address, CLIENT), timeout=PATIENCE)
        self._lock = threading.Lock()
        self._input = self._socket.makefile("rb")
        self._write(b'CONNECT {"verbose":false,"echo":false}\r\nSUB hrld.node.*.ring 1\r\nSUB %s 2\r\nPING\r\n' % ALL.encode())
        self._is_ready = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        assert self._is_ready.wait(PATIENCE), "the NATS server does not answer"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _write(self, data):
        # The server ends a connection that it cannot serve in time, as on a machine that hardly runs it.
        with self._lock, contextlib.suppress(OSError):
            self._socket.sendall(data)

    def _read(self):
        while line := self._line():
            match line.split():
                case [b"PING"]:
                    self._write(b"PONG\r\n")
                case [b"PONG"]:
                    self._is_ready.set()
                case [b"MSG", *_, size]:
                    self.rings.append(Ring(self._input.read(int(size) + 2)[:-2]))
                    if self.chance:
                        self.send(self.chance.choice(self.rings).data)

    def _line(self):
        try:
            return self._input.readline()
        except OSError:
            return b""

    def send(self, data):
        """Sends a ring to all nodes."""
        self.sent += 1
        self._write(b"PUB %s %d\r\n%s\r\n" % (ALL.encode(), len(data), data))

    def ring(self, id):
        """The ring that has a notification, as soon as it was heard."""
        return eventually(lambda: next((each for each in list(self.rings) if id in each.places), None), what=f"the ring of {id}")
