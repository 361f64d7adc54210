"""A TCP proxy that cuts connections where a test says: in the middle of a packet, or at once."""

import dataclasses
import select
import socket
import struct
import threading

from service import PATIENCE


@dataclasses.dataclass
class Cut:
    """The number of bytes of one direction (`down`: from the service) that pass before the connection is cut."""

    direction: str
    rest: int


class CuttingProxy:
    """Listens on an address and forwards to a port of the loopback, which may change from one connection to the next."""

    def __init__(self, address, target):
        self.target = target
        self.cuts = 0
        self._plan = None
        self._lock = threading.Lock()
        self._pairs = set()
        self._listener = socket.create_server((address, 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def plan(self, direction, after):
        """Cuts the next connection on which so many bytes have passed from now on."""
        with self._lock:
            self._plan = Cut(direction, after)

    def cut(self):
        """Cuts every connection now."""
        with self._lock:
            self._plan = None
            pairs = list(self._pairs)
        for pair in pairs:
            self._end(pair)

    def close(self):
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                service = socket.create_connection(("127.0.0.1", self.target()), timeout=PATIENCE)
            except OSError:
                client.close()
                continue
            pair = (client, service)
            with self._lock:
                self._pairs.add(pair)
            threading.Thread(target=self._forward, args=(pair,), daemon=True).start()

    def _forward(self, pair):
        client, service = pair
        try:
            while True:
                ready, _, _ = select.select([client, service], [], [], 1)
                for source in ready:
                    data = source.recv(4096)
                    if not data:
                        return
                    data, is_last = self._allowed("up" if source is client else "down", data)
                    (service if source is client else client).sendall(data)
                    if is_last:
                        return
        except (OSError, ValueError):
            pass
        finally:
            self._end(pair)

    def _allowed(self, direction, data):
        with self._lock:
            plan = self._plan
            if plan is None or plan.direction != direction:
                return data, False
            if len(data) <= plan.rest:
                plan.rest -= len(data)
                return data, False
            self._plan = None
            return data[: plan.rest], True

    def _end(self, pair):
        with self._lock:
            if pair not in self._pairs:
                return
            self._pairs.remove(pair)
            self.cuts += 1
        for end in pair:
            try:
                # A reset: neither side can take it for an orderly end.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                # Wakes the thread that waits for it.
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
