"""A disk with a cache that loses power: a server of the NBD protocol, to which a virtual machine is connected.

Writes stay in the cache until the machine flushes it. A cut drops what is in the cache then, or keeps a random part of it: some
sectors reach the medium and others do not, in any order, as in a real disk.
"""

import os
import pathlib
import random
import socket
import struct
import threading

SECTOR = 512

# The NBD protocol, as far as QEMU uses it.
# https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
OPTION_MAGIC = 0x49484156454F5054
OPTION_REPLY = 0x3E889045565A9
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698
ABORT, LIST_EXPORTS, INFO, GO = 2, 3, 6, 7
ACKNOWLEDGED, INFORMATION, UNSUPPORTED = 1, 3, 1 << 31 | 1
#: The flags of the disk: it has flags, it can flush, and it can write through its cache.
FLAGS = 1 << 0 | 1 << 2 | 1 << 3
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
WRITE_THROUGH = 1
NOT_PERMITTED, INVALID = 1, 22


class VolatileDisk:
    """The medium is a file; the cache is in memory.

    A flush takes some time, like on a real disk. With `honest=False` the disk answers a flush and does nothing: the control of a
    test.
    """

    def __init__(self, medium, honest=True, flush_seconds=0):
        self.medium = os.open(medium, os.O_RDWR)
        self.size = os.fstat(self.medium).st_size
        self.honest = honest
        self.flush_seconds = flush_seconds
        #: Set while it has no power.
        self.is_off = threading.Event()
        #: The versions of each sector that are not on the medium, the newest last.
        self.cache = {}
        self.writes = self.flushes = 0

    def read(self, offset, length):
        data = bytearray(os.pread(self.medium, length, offset))
        for place in range(0, length, SECTOR):
            if versions := self.cache.get((offset + place) // SECTOR):
                data[place : place + SECTOR] = versions[-1]
        return bytes(data)

    def write(self, offset, data, through=False):
        self.writes += 1
        through = through and self.honest
        for place in range(0, len(data), SECTOR):
            sector = (offset + place) // SECTOR
            if through:
                self.cache.pop(sector, None)
            else:
                self.cache.setdefault(sector, []).append(data[place : place + SECTOR])
        if through:
            os.pwrite(self.medium, data, offset)

    def flush(self):
        if self.is_off.wait(self.flush_seconds):
            raise ConnectionError("the power is off")
        self.flushes += 1
        if self.honest:
            for sector, versions in self.cache.items():
                os.pwrite(self.medium, versions[-1], sector * SECTOR)
            self.cache.clear()

    def cut(self, chance: random.Random):
        """Loses power. Returns the number of sectors in the cache, and of those that reached the medium.

        In one cut of three nothing of the cache is kept. In the others each sector stays as it was, or gets one of the versions that
        were in the cache, with a probability that is drawn for the cut.
        """
        share = chance.choice((0, chance.random(), chance.random()))
        kept = 0
        for sector, versions in self.cache.items():
            if chance.random() < share:
                kept += 1
                os.pwrite(self.medium, chance.choice(versions), sector * SECTOR)
        lost = len(self.cache)
        self.cache.clear()
        return lost, kept

    def close(self):
        os.close(self.medium)


class DiskServer:
    """Serves a disk at a socket, to one machine at a time."""

    def __init__(self, disk, path: pathlib.Path):
        self.disk, self.path = disk, path
        self.error = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._listener.settimeout(0.2)
        self._thread = None
        self._is_over = threading.Event()

    def expect(self):
        """Serves the next machine that connects, until it goes."""
        self._is_over.clear()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def wait(self, timeout):
        """Waits until all is served that a machine asked for, which is switched off."""
        self._is_over.set()
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "the machine still holds its disk"
        if self.error:
            raise self.error

    def close(self):
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def _serve(self):
        connection = None
        while not connection:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                if self._is_over.is_set():
                    return
        with connection, connection.makefile("rb") as input:
            try:
                if self._negotiate(connection, input):
                    while self._answer(connection, input):
                        pass
            except (ConnectionError, EOFError):
                # The machine was killed in the middle of a message.
                pass
            except Exception as error:
                self.error = error

    def _negotiate(self, connection, input):
        """Answers options until the machine has chosen the disk; whether it has."""
        connection.sendall(b"NBDMAGIC" + struct.pack(">QH", OPTION_MAGIC, 1 | 2))
        exactly(input, 4)
        while True:
            _, option, length = struct.unpack(">QII", exactly(input, 16))
            exactly(input, length)

            def reply(kind, data=b""):
                connection.sendall(struct.pack(">QIII", OPTION_REPLY, option, kind, len(data)) + data)

            if option in (INFO, GO):
                reply(INFORMATION, struct.pack(">HQH", 0, self.disk.size, FLAGS))
                # Information 3: the smallest, preferred and largest block.
                reply(INFORMATION, struct.pack(">HIII", 3, SECTOR, 4096, 1 << 25))
                reply(ACKNOWLEDGED)
                if option == GO:
                    return True
            elif option == ABORT:
                reply(ACKNOWLEDGED)
                return False
            else:
                reply(UNSUPPORTED)

    def _answer(self, connection, input):
        """Answers one request; whether another may follow."""
        magic, flags, kind, handle, offset, length = struct.unpack(">IHHQQI", exactly(input, 28))
        assert magic == REQUEST_MAGIC, f"no NBD request: {magic:#x}"
        data, error = b"", 0
        if kind == DISCONNECT:
            return False
        written = exactly(input, length) if kind == WRITE else b""
        if kind in (READ, WRITE) and (offset % SECTOR or length % SECTOR or offset + length > self.disk.size):
            error = INVALID
        elif kind == READ:
            data = self.disk.read(offset, length)
        elif kind == WRITE:
            self.disk.write(offset, written, through=bool(flags & WRITE_THROUGH))
        elif kind == FLUSH:
            self.disk.flush()
        else:
            error = NOT_PERMITTED
        connection.sendall(struct.pack(">IIQ", REPLY_MAGIC, error, handle) + data)
        return True


def exactly(input, length):
    data = input.read(length)
    if len(data) < length:
        raise EOFError
    return data
