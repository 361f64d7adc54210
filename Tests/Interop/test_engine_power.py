"""Takes the power from machines with NATS servers under load, and shows that the log keeps what was acknowledged.

Only `make soak` runs this. Two stories: all three servers lose power at once, and one loses it after it was needed for each
acknowledgement. The control has servers that sync as they do by default: they must lose something.
"""

import asyncio
import itertools
import shutil

import pytest

from engine_client import EngineClient
from engine_load import EngineLoad, verdict
from guest import NoGuest, require
from nats_guest import NATSGuest, make_machine
from nats_servers import NATSTrio
from test_engine import PACE, Figures
from volatile_disk import VolatileDisk

#: Seconds of a flush, as on a slow disk: a cut then often comes between a write and the end of its flush.
FLUSH = 0.02
#: Cuts of the same cluster.
LIFE = 5
#: Cuts without syncs, for each story. One of them must lose something.
CONTROLS = 3


class Story:
    """A new cluster of which `guests` run in a machine that loses power, and the others beside it."""

    def __init__(self, common, name, guests, figures, sync):
        folder = common / name
        folder.mkdir()
        self.trio, self.figures = NATSTrio(folder, sync), figures
        self.outside = self.trio.servers[:-guests]
        image = folder / "data.img"
        shutil.copy(common / "data.img", image)
        self.disk = VolatileDisk(image, flush_seconds=FLUSH)
        self.guest = NATSGuest(common, self.disk, self.trio.servers[-guests:], sync)

    async def start(self):
        self.guest.switch_on()
        for server in self.outside:
            server.start()
        await self.wait_for(self.trio.is_whole)

    def load(self, chance):
        # The machine is slow.
        return EngineLoad(self.trio, chance, records=4, depth=8)

    async def play(self, chances):
        """Cuts the power once for each source of chance; returns all that is wrong afterwards."""
        await self.start()
        async with self.load(chances[0]) as load:
            for chance in chances:
                # The first cut comes soon after the streams were made.
                await load.advance(chance.randrange(1, PACE) if load.stored else 5)
                await self.lose_power(load, chance)
                if self.outside:
                    # The machine is slow. Under load it hardly ever has all that the others have.
                    await self.wait_for(self.guest.servers[0].is_healthy)
                    await load.advance(PACE)
                    for server in self.outside:
                        if not server.process:
                            server.start()
                else:
                    await self.wait_for(self.trio.is_whole)
                self.figures.add(cuts=1)
                print(f"{load.acknowledged} acknowledged, holes {load.holes}; {self.figures}", flush=True)
            await load.advance(PACE)
        self.figures.add(acknowledged=load.acknowledged, unknown=load.unknown, bounded_reads=load.reads, holes=len(load.holes), **load.refusals())
        await self.wait_for(self.trio.is_whole)
        return await verdict(load, self.trio.servers)

    async def lose(self, chance):
        """Cuts the power once; returns what is wrong on the servers that run afterwards. Streams may be gone altogether."""
        await self.start()
        async with self.load(chance) as load:
            await load.advance(5 * PACE)
            await self.lose_power(load, chance)
        running = [server for server in self.trio.servers if server in self.guest.servers or server.process]
        await self.wait_for(lambda: all(server.is_healthy() for server in running))
        client = await EngineClient.connect(*(server.url for server in running))
        try:
            answer = await client.information("BOX")
        finally:
            await client.close()
        # 10059: no such stream.
        if answer.get("error", {}).get("err_code") == 10059:
            return [f"the stream is gone, with {load.acknowledged} acknowledged writes"]
        return await verdict(load, running)

    async def lose_power(self, load, chance):
        """Cuts the power under load, and switches the machine on again.

        If only one server is in it: that is needed for a majority, loses power, and is needed again, without the one that had the
        rest.
        """
        if self.outside:
            with_it, without_it = chance.sample(self.outside, 2)
            # Not paused: what waits in its sockets would reach it later.
            without_it.kill()
            await load.advance(chance.randrange(PACE, 3 * PACE))
            with_it.kill()
        else:
            await asyncio.sleep(chance.random() / 2)  # pace: the moment of the cut
        self.cut(chance)
        if self.outside:
            without_it.start()
        self.guest.switch_on()

    def cut(self, chance):
        self.guest.kill()
        unflushed, kept = self.disk.cut(chance)
        self.figures.add(unflushed_sectors=unflushed, reached_the_disk=kept)

    async def wait_for(self, condition):
        await asyncio.to_thread(self.guest.wait_for, condition)

    def close(self):
        self.guest.close()
        self.disk.close()
        self.trio.close()


def with_story(folder, name, guests, figures, sync, play):
    story = Story(folder, name, guests, figures, sync)
    try:
        return asyncio.run(play(story))
    finally:
        story.close()


def cut_power(folder, guests, rounds):
    """The control first, which must lose something; then all rounds, which must lose nothing."""
    require()
    make_machine(folder)
    for number in range(CONTROLS):
        chance = rounds.random("control", number)
        try:
            lost = with_story(folder, f"control{number}", guests, Figures(), "2m", lambda story: story.lose(chance))
        except NoGuest as error:
            # Servers that do not get well again may have lost something. The next control has to show it.
            print(error)
            lost = []
        if lost:
            break
    assert lost, f"{CONTROLS} cuts without syncs lost nothing: this test would find nothing"
    print(f"control {number}: {len(lost)} faults, such as: {lost[0]}", flush=True)
    figures = Figures()
    for life, group in itertools.groupby(rounds, key=lambda number: number // LIFE):
        numbers = list(group)
        chances = [rounds.random(number) for number in numbers]
        faults = with_story(folder, f"cluster{life}", guests, figures, "always", lambda story: story.play(chances))
        assert not faults, f"cuts {numbers}: {faults[:5]}"
    rounds.report(**figures, lost=0, control_faults=len(lost))


@pytest.mark.slow
def test_a_power_cut_of_all_servers_loses_nothing(tmp_path, rounds):
    cut_power(tmp_path, 3, rounds)


@pytest.mark.slow
def test_a_power_cut_of_one_server_loses_nothing(tmp_path, rounds):
    cut_power(tmp_path, 1, rounds)
