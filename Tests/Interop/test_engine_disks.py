"""NATS JetStream on disks that are slow, full or broken, that are lost, or that go back to a former state."""

import asyncio
import shutil

import pytest

from disk_faults import DiskFault, slow_disk
from engine_client import BOX, EngineClient
from engine_ledger import EngineLedger
from engine_load import EngineLoad, verdict
from nats_servers import NATSServer, NATSTrio
from private_mounts import in_private_mounts, mount
from service import PATIENCE, eventually_async
from test_engine import PACE, Figures, leader_of

#: Refusals that show that no server takes writes any more.
ENOUGH = 200


async def leader(trio, load):
    return leader_of(await load.clients[0].information("BOX"), trio)


async def slow(trio, load):
    """Each sync of the leader takes 20 ms more. Writes take longer."""
    fault = slow_disk(await leader(trio, load), 0.02)
    try:
        await load.advance(PACE)
    finally:
        fault.close()


async def failing(trio, load):
    """Each sync of the leader fails. The others go on."""
    server = await leader(trio, load)
    fault = DiskFault(server, "fsync,fdatasync", "error=EIO")
    try:
        await load.advance(PACE)
    finally:
        fault.close()
    start_again(server)


async def full(trio, load):
    """The disk of the leader is full. It takes no part any more; the others go on."""
    server = await leader(trio, load)
    ballast = fill(server)
    await load.advance(PACE)
    ballast.unlink()
    start_again(server)


async def all_full(trio, load):
    """All disks are full. Writes are refused until there is room and the servers were started again."""
    ballasts = [fill(server) for server in trio.servers]
    before = len(load.ledger.writes)
    await eventually_async(
        lambda: sum(write.refused is not None for write in load.ledger.writes[before:]) >= ENOUGH, what="refused writes"
    )
    for ballast in ballasts:
        ballast.unlink()
    for server in trio.servers:
        start_again(server)


async def replaced(trio, load):
    """The disk of one server is replaced by an empty one. The others fill it."""
    server = await leader(trio, load)
    server.kill()
    await load.advance(PACE)
    for part in server.folder.iterdir():
        shutil.rmtree(part)
    start_again(server)


async def set_back(trio, load):
    """The disk of one server goes back to a former state. The others fill it, as long as both have all that was acknowledged."""
    server = trio.servers[0]
    server.kill()
    copy = server.folder.with_name("copy")
    shutil.copytree(server.folder, copy, dirs_exist_ok=True)
    start_again(server)
    await asyncio.to_thread(trio.wait)
    await load.advance(PACE)
    server.kill()
    for part in server.folder.iterdir():
        shutil.rmtree(part)
    shutil.copytree(copy, server.folder, dirs_exist_ok=True)
    shutil.rmtree(copy)
    start_again(server)


#: `make test` plays the first two.
FAULTS = (all_full, slow, full, failing, replaced, set_back)


def fill(server):
    """Fills the disk of a server. Returns the file that does."""
    ballast = server.folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast


def start_again(server):
    server.kill()
    server.start()


async def after(fault, trio, chance):
    """All that is wrong after a fault under load."""
    trio.launch()
    await asyncio.to_thread(trio.wait)
    async with EngineLoad(trio, chance) as load:
        await load.advance(PACE)
        await fault(trio, load)
        await asyncio.to_thread(trio.wait)
        await load.advance(PACE)
        await load.read_again()
    return load, await verdict(load, trio.servers)


@pytest.mark.slow
@in_private_mounts
def test_bad_disks_lose_nothing(tmp_path, rounds):
    figures = Figures()
    for number in rounds:
        fault = FAULTS[number % len(FAULTS)]
        folder = tmp_path / str(number)
        trio = NATSTrio(folder)
        for server in trio.servers:
            server.folder.mkdir(parents=True)
            mount(server.folder, "tmpfs")
        try:
            load, faults = asyncio.run(after(fault, trio, rounds.random(number)))
        finally:
            trio.close()
        assert not faults, f"{fault.__name__}: {faults[:5]}"
        figures.add(**{fault.__name__: 1}, acknowledged=load.acknowledged)
    rounds.report(**figures, lost=0)


def test_a_log_that_went_back_or_was_made_anew_can_be_told(tmp_path):
    """That is a loss, which no server notices by itself. The last sequence goes back, or the stream has another creation time."""
    server = NATSServer("n1", tmp_path / "n1")
    ledger = EngineLedger()

    async def write(count):
        client = await EngineClient.connect(server.url)
        await client.make_stream(BOX | {"num_replicas": 1})
        for _ in range(count):
            await client.store(ledger, "box.a")
        information = await client.information("BOX")
        await client.close()
        return information

    def again(count):
        server.start().wait()
        try:
            return asyncio.run(write(count))
        finally:
            server.kill()

    first = again(5)
    shutil.copytree(server.folder, tmp_path / "copy")
    second = again(5)
    assert second["created"] == first["created"] and second["state"]["last_seq"] == 10
    shutil.rmtree(server.folder)
    (tmp_path / "copy").rename(server.folder)
    back = again(0)
    assert back["created"] == first["created"] and back["state"]["last_seq"] == 5
    shutil.rmtree(server.folder)
    # More than it ever had: the sequence alone would not tell.
    anew = again(20)
    assert anew["created"] > first["created"] and anew["state"]["last_seq"] == 20
