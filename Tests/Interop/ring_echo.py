"""Rings between the nodes of a cluster, heard on a NATS server and sent again: late and repeated.

A ring is sealed for its subject, so each is sent to the same node or nodes again.
"""

import collections
import contextlib
import socket
import threading

from nats_servers import CLIENT
from service import PATIENCE, eventually

#: Rings that are kept to be sent again.
KEPT = 200
#: The subject of rings to all nodes.
ALL = "hrld.nodes.ring"


class RingEcho:
    """Hears all rings. With `chance`, each is followed by an old one."""

    def __init__(self, server, chance=None):
        self.chance = chance
        #: The subject and the bytes of each.
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
                case [b"MSG", subject, *_, size]:
                    self.rings.append((subject, self._input.read(int(size) + 2)[:-2]))
                    if self.chance:
                        self.send(*self.chance.choice(self.rings))

    def _line(self):
        try:
            return self._input.readline()
        except OSError:
            return b""

    def send(self, subject, data):
        self.sent += 1
        self._write(b"PUB %s %d\r\n%s\r\n" % (subject, len(data), data))

    def repeat(self, count):
        """Waits until as many rings were heard, and sends all of them again."""
        eventually(lambda: len(self.rings) >= count, what=f"{count} rings")
        for ring in list(self.rings):
            self.send(*ring)
