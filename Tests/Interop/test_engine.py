"""NATS JetStream as the log of a cluster, before any Herald stands on it: three real servers, faults, and the ledger of all writes.

Each test shows something that Herald relies on: what is acknowledged is never lost and keeps its order, a condition that was
accepted held in the log, and a read that names its bound has all that was acknowledged up to it.
"""

import asyncio
import random
import shutil

import pytest

from disk_faults import DiskFault, slow_disk
from engine_ledger import BOX, EngineClient, EngineLedger, EngineLoad, verdict
from nats_servers import NATSTrio
from private_mounts import in_private_mounts, mount
from service import PATIENCE

#: Acknowledged writes between two faults.
PACE = 150


@pytest.fixture
def trio(tmp_path):
    trio = NATSTrio(tmp_path)
    yield trio
    trio.close()


def leader_of(information, trio):
    return trio.named(information["cluster"]["leader"])


class TestFaults:
    """Faults of servers under load. Nothing that was acknowledged may be lost, and no read may be stale."""

    def test_servers_that_are_killed_and_paused_lose_nothing(self, trio, rounds):
        async def story():
            trio.start()
            ledger = EngineLedger()
            async with EngineLoad(trio, ledger, rounds.random("load")) as load:
                await load.advance(PACE)
                for number in rounds:
                    await self.fault(trio, load, rounds.random(number))
                    await load.advance(PACE)
                    await asyncio.to_thread(trio.wait)
            return load, await verdict(load, trio)

        load, faults = asyncio.run(story())
        assert not faults, faults[:5]
        # A run in which nothing was in doubt and no replica was behind would have tested little.
        assert load.ledger.unknown and load.reads, "no write was in flight when a server died, or nothing was read"
        rounds.report(
            acknowledged=len(load.ledger.acknowledged) + len(load.record_ledger.acknowledged), unknown=len(load.ledger.unknown),
            bounded_reads=load.reads, stale_answers=load.stale, lost=0,
        )

    @staticmethod
    async def fault(trio, load, chance):
        server = chance.choice(trio.servers)
        if chance.random() < 0.5:
            server = leader_of(await load.clients[0].information("BOX"), trio)
        if chance.random() < 0.3:
            server.pause()
            # Until the others have chosen a leader without it, or for less.
            await asyncio.sleep(chance.choice((0.5, 3, 9)))
            server.resume()
        else:
            server.kill()
            if chance.random() < 0.5:
                await load.advance(PACE)
            server.start()

    def test_three_servers_that_are_killed_at_once_lose_nothing(self, trio, rounds):
        """The first kills come before the first snapshot: the stream is rebuilt from the Raft log alone."""
        async def story():
            trio.start()
            ledger = EngineLedger()
            async with EngineLoad(trio, ledger, rounds.random("load")) as load:
                for number in rounds:
                    await load.advance(rounds.random(number).choice((5, PACE, 10 * PACE)))
                    trio.kill_all()
                    await asyncio.to_thread(trio.start)
                await load.advance(PACE)
            return load, await verdict(load, trio)

        load, faults = asyncio.run(story())
        assert not faults, faults[:5]
        rounds.report(acknowledged=len(load.ledger.acknowledged) + len(load.record_ledger.acknowledged), lost=0)


class TestReads:
    def test_a_leader_that_was_paused_answers_no_bounded_read_with_the_past(self, trio):
        """The leader is paused, the others go on, and it is asked the moment that it runs again.

        It may still take itself for the leader. A read whose bound is a write that came later must not accept its answer.
        """
        async def story():
            trio.start()
            ledger = EngineLedger()
            client = await EngineClient.connect(*trio.urls)
            await client.make_stream(BOX)
            old = leader_of(await client.information("BOX"), trio)
            others = [server.url for server in trio.servers if server is not old]
            direct, elsewhere = await EngineClient.connect(old.url), await EngineClient.connect(*others)
            await client.store(ledger, "box.slot")
            old.pause()
            second = await elsewhere.store(ledger, "box.slot")
            old.resume()
            answers = []
            async with asyncio.timeout(PATIENCE):
                while not answers or answers[-1][1] < second.sequence:
                    answer = await direct.newest("BOX", ["box.slot"])
                    answers += [answer] if answer else []
            for each in (client, direct, elsewhere):
                await each.close()
            return ledger, answers, second

        ledger, answers, second = asyncio.run(story())
        for found, up_to in answers:
            assert up_to < second.sequence or found[-1][0] >= second.sequence, (found, up_to)
        assert not ledger.disorder()

    def test_an_answer_without_matches_names_no_bound(self, trio):
        """So a bounded read must name a record that exists, such as the barrier itself."""
        async def story():
            trio.start()
            client = await EngineClient.connect(*trio.urls)
            await client.make_stream(BOX)
            ledger = EngineLedger()
            barrier = await client.store(ledger, "box.barrier")
            nothing = await client.newest("BOX", ["box.absent"])
            both = None
            async with asyncio.timeout(PATIENCE):
                while not both or both[1] < barrier.sequence:
                    both = await client.newest("BOX", ["box.absent", "box.barrier"])
            await client.close()
            return nothing, both, barrier

        nothing, (found, up_to), barrier = asyncio.run(story())
        assert nothing is None
        assert [entry[0] for entry in found] == [barrier.sequence] and up_to >= barrier.sequence


class TestDisks:
    def test_a_server_that_lost_its_disk_is_filled_again(self, trio):
        """One disk of three is wiped, and one is set back to an old copy. The log goes on without a gap."""
        async def story():
            trio.start()
            ledger = EngineLedger()
            async with EngineLoad(trio, ledger, random.Random(trio.servers[0].name)) as load:
                await load.advance(PACE)
                server = trio.servers[0]
                server.kill()
                copy = server.folder.with_name("copy")
                shutil.copytree(server.folder, copy)
                await load.advance(PACE)
                server.start()
                await asyncio.to_thread(trio.wait)
                await load.advance(PACE)
                server.kill()
                shutil.rmtree(server.folder)
                copy.rename(server.folder)
                server.start()
                await load.advance(PACE)
                await asyncio.to_thread(trio.wait)
                other = trio.servers[1]
                other.kill()
                shutil.rmtree(other.folder)
                other.start()
                await load.advance(PACE)
                await asyncio.to_thread(trio.wait)
            return load, await verdict(load, trio)

        _, faults = asyncio.run(story())
        assert not faults, faults[:5]

    def test_a_log_that_went_back_can_be_told(self, trio):
        """All three disks are set back: that is a loss, and the stream shows it by its last sequence or its creation."""
        async def story():
            trio.start()
            ledger = EngineLedger()
            client = await EngineClient.connect(*trio.urls)
            await client.make_stream(BOX)
            await client.store(ledger, "box.a")
            before = await client.information("BOX")
            trio.kill_all()
            for server in trio.servers:
                shutil.copytree(server.folder, server.folder.with_name(f"{server.name}-old"))
            await asyncio.to_thread(trio.start)
            for _ in range(20):
                await client.store(ledger, "box.a")
            seen = await client.information("BOX")
            trio.kill_all()
            for server in trio.servers:
                shutil.rmtree(server.folder)
                server.folder.with_name(f"{server.name}-old").rename(server.folder)
            await asyncio.to_thread(trio.start)
            after = await client.information("BOX")
            await client.close()
            return before, seen, after

        before, seen, after = asyncio.run(story())
        assert after["created"] == before["created"] == seen["created"]
        assert after["state"]["last_seq"] < seen["state"]["last_seq"]

    def test_a_slow_disk_delays_and_loses_nothing(self, trio):
        async def story():
            trio.start()
            ledger = EngineLedger()
            async with EngineLoad(trio, ledger, random.Random(trio.servers[0].name)) as load:
                await load.advance(PACE)
                leader = leader_of(await load.clients[0].information("BOX"), trio)
                fault = slow_disk(leader, 0.02)
                try:
                    await load.advance(PACE)
                finally:
                    fault.close()
                await asyncio.to_thread(trio.wait)
            return load, await verdict(load, trio)

        _, faults = asyncio.run(story())
        assert not faults, faults[:5]

    def test_a_disk_whose_syncs_fail_loses_nothing(self, trio):
        """The syncs of one server fail for a while. It may stop; the others go on."""
        async def story():
            trio.start()
            ledger = EngineLedger()
            async with EngineLoad(trio, ledger, random.Random(trio.servers[0].name)) as load:
                await load.advance(PACE)
                server = leader_of(await load.clients[0].information("BOX"), trio)
                fault = DiskFault(server, "fsync,fdatasync", "error=EIO")
                try:
                    await load.advance(PACE)
                finally:
                    fault.close()
                server.kill()
                server.start()
                await asyncio.to_thread(trio.wait)
            return load, await verdict(load, trio)

        _, faults = asyncio.run(story())
        assert not faults, faults[:5]

    @in_private_mounts
    def test_a_full_disk_refuses_and_loses_nothing(self, tmp_path):
        """All three disks are full: writes are refused, and are taken again once there is room."""
        trio = NATSTrio(tmp_path)
        for server in trio.servers:
            server.folder.mkdir()
            mount(server.folder, "tmpfs", size="24m")

        async def story():
            # On this thread, which has the mounts.
            trio.start()
            ledger = EngineLedger()
            async with EngineLoad(trio, ledger, random.Random(trio.servers[0].name)) as load:
                await load.advance(PACE)
                ballast = []
                for server in trio.servers:
                    ballast.append(server.folder / "ballast")
                    fill(ballast[-1])
                refusals = await refused(load)
                for each in ballast:
                    each.unlink()
                for server in trio.servers:
                    server.kill()
                    server.start()
                await load.advance(PACE)
                await asyncio.to_thread(trio.wait)
            return load, refusals, await verdict(load, trio)

        try:
            _, refusals, faults = asyncio.run(story())
        finally:
            trio.close()
        assert refusals
        assert not faults, faults[:5]


def fill(file):
    with file.open("wb", buffering=0) as output:
        try:
            while True:
                output.write(bytes(1 << 16))
        except OSError:
            pass


async def refused(load):
    """Waits until a write is refused or stays unanswered, now that disks are full."""
    async with asyncio.timeout(PATIENCE):
        count = len(load.ledger.writes)
        while not any(write.refused for write in load.ledger.writes[count:]) and len(load.ledger.unknown) < 50:
            await asyncio.sleep(0.05)
    return True


def test_a_server_says_whether_it_syncs_every_write(trio, tmp_path):
    """Herald refuses to start on servers that do not: by default they sync every two minutes."""
    trio.start()
    assert all(server.ask("varz")["jetstream"]["config"]["sync_always"] is True for server in trio.servers)
    trio.close()
    (tmp_path / "lazy").mkdir()
    lazy = NATSTrio(tmp_path / "lazy", sync="2m")
    try:
        lazy.start()
        assert not any(server.ask("varz")["jetstream"]["config"].get("sync_always") for server in lazy.servers)
    finally:
        lazy.close()
