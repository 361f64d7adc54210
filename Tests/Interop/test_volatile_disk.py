"""The disk of `test_power.py`: it keeps what was flushed, and may lose the rest."""

import random
import socket
import struct

import pytest

from service import PATIENCE
from volatile_disk import FLUSH, GO, OPTION_MAGIC, READ, REQUEST_MAGIC, SECTOR, WRITE, WRITE_THROUGH, DiskServer, VolatileDisk

OLD, NEW, NEWER = (byte * SECTOR for byte in (b"o", b"n", b"m"))


@pytest.fixture
def medium(tmp_path):
    path = tmp_path / "medium"
    path.write_bytes(OLD * 64)
    return path


def cuts(medium, write, honest=True):
    """The contents of the medium after many cuts of power, each of which follows the same writes to the same medium."""
    found = []
    for number in range(50):
        medium.write_bytes(OLD * 64)
        disk = VolatileDisk(medium, honest)
        write(disk)
        disk.cut(random.Random(number))
        assert disk.read(0, 64 * SECTOR) == medium.read_bytes()
        disk.close()
        found.append(medium.read_bytes())
    return found


def sector(content, number):
    return content[number * SECTOR : (number + 1) * SECTOR]


def test_what_is_written_is_read_at_once(medium):
    disk = VolatileDisk(medium)
    disk.write(SECTOR, NEW + NEWER)
    assert disk.read(0, 4 * SECTOR) == OLD + NEW + NEWER + OLD
    assert medium.read_bytes() == OLD * 64
    disk.close()


def test_a_cut_keeps_all_that_was_flushed(medium):
    def write(disk):
        disk.write(0, NEW * 64)
        disk.flush()

    assert set(cuts(medium, write)) == {NEW * 64}


def test_a_cut_keeps_a_write_through_the_cache_and_not_an_older_version(medium):
    def write(disk):
        disk.write(0, NEW)
        disk.write(0, NEWER, through=True)
        disk.write(SECTOR, NEW)

    found = cuts(medium, write)
    assert {sector(content, 0) for content in found} == {NEWER}
    assert {sector(content, 1) for content in found} == {OLD, NEW}


def test_a_cut_loses_all_or_some_of_what_was_not_flushed_in_any_order(medium):
    def write(disk):
        disk.write(0, NEW * 64)
        disk.write(0, NEWER * 64)

    found = cuts(medium, write)
    assert OLD * 64 in found
    assert {sector(content, 7) for content in found} == {OLD, NEW, NEWER}
    # A later sector without an earlier one, and the reverse.
    assert any(sector(content, 0) == OLD != sector(content, 63) for content in found)
    assert any(sector(content, 0) != OLD == sector(content, 63) for content in found)


def test_a_disk_that_lies_loses_what_was_flushed(medium):
    def write(disk):
        disk.write(0, NEW, through=True)
        disk.write(SECTOR, NEW)
        disk.flush()

    assert OLD * 64 in cuts(medium, write, honest=False)


def test_a_machine_reads_writes_and_flushes(medium, tmp_path):
    disk = VolatileDisk(medium)
    server = DiskServer(disk, tmp_path / "socket")
    server.expect()
    with socket.socket(socket.AF_UNIX) as machine:
        machine.settimeout(PATIENCE)
        machine.connect(str(server.path))
        input = machine.makefile("rb")
        assert input.read(18)[:8] == b"NBDMAGIC"
        machine.sendall(struct.pack(">I", 1) + struct.pack(">QII", OPTION_MAGIC, GO, 0))
        # Two pieces of information, and the end of the options.
        assert struct.unpack(">HQH", input.read(20 + 12)[20:])[1] == 64 * SECTOR
        input.read(20 + 14 + 20)

        def ask(kind, offset=0, length=0, data=b"", flags=0):
            machine.sendall(struct.pack(">IHHQQI", REQUEST_MAGIC, flags, kind, 7, offset, length) + data)
            _, error, handle = struct.unpack(">IIQ", input.read(16))
            assert handle == 7
            return error, input.read(length) if kind == READ and not error else b""

        assert ask(WRITE, 0, SECTOR, NEW) == (0, b"")
        assert ask(READ, 0, 2 * SECTOR) == (0, NEW + OLD)
        assert sector(medium.read_bytes(), 0) == OLD
        assert ask(FLUSH) == (0, b"")
        assert sector(medium.read_bytes(), 0) == NEW
        assert ask(WRITE, SECTOR, SECTOR, NEW, WRITE_THROUGH) == (0, b"")
        assert sector(medium.read_bytes(), 1) == NEW
        assert ask(READ, 63 * SECTOR, 2 * SECTOR)[0] != 0
        input.close()
    server.wait(timeout=PATIENCE)
    # The same without a machine.
    server.expect()
    server.wait(timeout=PATIENCE)
    server.close()
    disk.close()
