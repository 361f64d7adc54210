"""NATS JetStream as the log of a cluster, before any Herald stands on it: three real servers that die, and the ledger of all writes.

What is acknowledged is never lost and keeps its order, a condition that was accepted holds in the log, and a read that names its
bound has all that was acknowledged up to it. Each copy of the log must show that.
"""

import asyncio
import itertools

import pytest

from engine_client import BOX, RECORDS, EngineClient
from engine_ledger import EngineLedger, Entry
from engine_load import EngineLoad, verdict
from nats_servers import NATSTrio

#: Acknowledged writes between two faults.
PACE = 150
#: Rounds with the same cluster.
LIFE = 10
#: The same, where all die: a cluster makes a snapshot soon after that.
LIFE_OF_ALL = 3
#: Seconds in which writes go on after a fault of one server of three: an election takes 4 to 9.
WRITES_ARE_BACK = 10
#: Bytes of each write, for clusters that make Raft snapshots while they run: they do so every 8 MiB.
BALLAST = 6000


def leader_of(information, trio):
    return trio.named(information["cluster"]["leader"])


class Figures(dict):
    """Sums for the table of `make soak`."""

    def add(self, **figures):
        for name, value in figures.items():
            self[name] = self.get(name, 0) + value


def has_snapshot(trio):
    """Whether a stream's Raft group has a snapshot of more than its creation. Before, a start replays the whole Raft log."""
    names = [file.name for server in trio.servers for file in server.folder.glob("jetstream/$SYS/_js_/S-*/snapshots/snap.*")]
    # snap.TERM.INDEX
    return any(int(name.split(".")[2]) > 1 for name in names if not name.endswith(".tmp"))


async def after_faults(trio, rounds, numbers, fault, ballast, figures):
    """Plays faults under load on a new cluster, and checks all copies of its log."""
    trio.launch()
    await asyncio.to_thread(trio.wait)
    async with EngineLoad(trio, rounds.random("load", numbers[0]), ballast=ballast) as load:
        for number in numbers:
            await fault(trio, load, rounds.random(number), figures)
        await load.advance(PACE)
        await asyncio.to_thread(trio.wait)
        await load.read_again()
    faults = await verdict(load, trio.servers)
    figures.add(
        acknowledged=load.acknowledged, unknown=load.unknown, bounded_reads=load.reads, answers_too_old=load.stale, **load.refusals(),
        holes=len(load.holes), refused_and_stored=len(load.record_ledger.contradicted),
    )
    return faults


def play(tmp_path, rounds, life, fault):
    """Plays all rounds, `life` of them with the same cluster, and returns sums. Fails with the first cluster that lost something."""
    figures = Figures()
    for number, group in itertools.groupby(rounds, key=lambda number: number // life):
        numbers = list(group)
        folder = tmp_path / f"cluster{number}"
        folder.mkdir()
        trio = NATSTrio(folder)
        try:
            faults = asyncio.run(after_faults(trio, rounds, numbers, fault, BALLAST if number % 2 else 0, figures))
        finally:
            trio.close()
        assert not faults, f"rounds {numbers}: {faults[:5]}"
    # Faults without a write in doubt, or without reads, would test little. Whether two faults leave one in doubt is chance.
    assert figures["bounded_reads"] and (figures["unknown"] or rounds.are_few)
    rounds.report(**figures, lost=0)
    return figures


async def kill_or_pause(trio, load, chance, figures):
    """A fault of one server, of the leader in every second case; the others go on."""
    await load.advance(PACE)
    # If a former victim is still behind, the writes wait for it as well.
    others_are_whole = await asyncio.to_thread(trio.is_whole)
    load.longest_gap = 0
    server = chance.choice(trio.servers)
    if chance.random() < 0.5:
        server = leader_of(await load.clients[0].information("BOX"), trio)
        figures.add(of_the_leader=1)
    if chance.random() < 0.25:
        figures.add(pauses=1)
        server.pause()
        # For less than an election takes, or until the others have chosen another leader.
        await asyncio.sleep(chance.choice((0.5, 3, 9)))  # pace: how long the pause lasts
        server.resume()
    else:
        figures.add(kills=1)
        server.kill()
        if chance.random() < 0.5:
            await load.advance(PACE)
        server.start()
    if chance.random() < 0.5:
        await asyncio.to_thread(trio.wait)
    await load.advance(PACE)
    if others_are_whole:
        figures.add(of_a_whole_cluster=1, writes_back_later=int(load.longest_gap > WRITES_ARE_BACK))
        figures["longest_gap"] = f"{max(float(figures.get('longest_gap', '0 s').split()[0]), load.longest_gap):.1f} s"


async def kill_all(trio, load, chance, figures):
    """All three servers die at once, the first time soon after the streams were made."""
    await load.advance(chance.choice((5, PACE, 10 * PACE)) if load.stored else 5)
    figures.add(**{"after_a_snapshot" if has_snapshot(trio) else "before_a_snapshot": 1})
    trio.kill_all()
    trio.launch()


@pytest.mark.slow
def test_servers_that_are_killed_and_paused_lose_nothing(tmp_path, rounds):
    figures = play(tmp_path, rounds, LIFE, kill_or_pause)
    # Beside other tests, the machine decides. An election may fail, and is repeated then.
    late, slowest = figures.get("writes_back_later", 0), figures.get("longest_gap", "0 s")
    assert rounds.are_few or late <= 1 + figures["of_a_whole_cluster"] // 20 and float(slowest.split()[0]) < 2 * WRITES_ARE_BACK, figures


@pytest.mark.slow
def test_three_servers_that_are_killed_at_once_lose_nothing(tmp_path, rounds):
    figures = play(tmp_path, rounds, LIFE_OF_ALL, kill_all)
    assert figures["before_a_snapshot"]


def test_three_servers_promise_what_herald_demands(tmp_path):
    """Herald refuses to start on servers that do not sync every write: by default they do so every two minutes."""
    (tmp_path / "lazy").mkdir()
    for trio, is_synced in ((NATSTrio(tmp_path), True), (NATSTrio(tmp_path / "lazy", sync="2m"), False)):
        try:
            trio.start()
            for server in trio.servers:
                state = server.ask("varz")
                assert state["jetstream"]["config"].get("sync_always", False) is is_synced
                assert tuple(map(int, state["version"].split("."))) >= (2, 15, 1)
        finally:
            trio.close()


class TestLedger:
    """The control: the ledger finds what a log has lost, doubled, swapped, or taken against a condition."""

    @staticmethod
    def story():
        """Two writes to one slot and one to another, each answered before the next, and the log that they make."""
        ledger = EngineLedger()
        for sequence, subject in ((1, "a"), (2, "b"), (3, "a")):
            ledger.stored(ledger.begin(subject), sequence)
        return ledger, [Entry(1, "a", "v1", None), Entry(2, "b", "v2", None), Entry(3, "a", "v3", None)]

    def test_a_whole_log_has_no_fault_with_or_without_what_was_replaced(self):
        ledger, log = self.story()
        assert ledger.faults(log) == ledger.faults(log[1:]) == []

    def test_a_lost_write_is_found(self):
        ledger, log = self.story()
        assert "3 was acknowledged" in ledger.faults(log[:2])[0]

    def test_a_write_that_was_refused_and_is_there_is_found(self):
        ledger, log = self.story()
        write = ledger.begin("a")
        write.refused = 503
        assert "was refused" in ledger.faults([*log, Entry(4, "a", write.value, None)])[0]

    def test_a_write_whose_condition_was_refused_may_be_there(self):
        ledger, log = self.story()
        write = ledger.begin("a")
        write.refused = 10164
        assert ledger.faults([*log, Entry(4, "a", write.value, None)]) == []
        assert ledger.contradicted == {write.value}

    def test_a_write_that_is_there_twice_is_found(self):
        ledger, log = self.story()
        assert "twice" in ledger.faults([*log, Entry(4, "a", "v3", None)])[0]

    def test_a_foreign_write_is_found(self):
        ledger, log = self.story()
        assert "nobody wrote" in ledger.faults([*log, Entry(4, "b", "v3", None)])[-1]

    def test_an_unanswered_write_may_be_there_or_not(self):
        ledger, log = self.story()
        write = ledger.begin("a")
        assert ledger.faults(log) == ledger.faults([*log, Entry(4, "a", write.value, None)]) == []
        assert ledger.unknown == [write]

    def test_a_sequence_that_two_writes_got_is_found(self):
        ledger, log = self.story()
        ledger.stored(ledger.begin("b"), 2)
        assert any("both acknowledged" in fault for fault in ledger.faults(log))

    def test_a_later_write_that_comes_earlier_in_the_log_is_found(self):
        ledger, _ = self.story()
        ledger.stored(ledger.begin("b"), 9)
        ledger.stored(ledger.begin("b"), 8)
        assert "was begun after" in ledger.disorder()[0]

    def test_a_condition_that_did_not_hold_and_a_record_that_is_lost_are_found(self):
        load = EngineLoad(None, None)
        for sequence in (1, 2):
            load.record_ledger.stored(load.record_ledger.begin("record.0"), sequence)
        whole = [Entry(1, "record.0", "v1", 0), Entry(2, "record.0", "v2", 1)]
        assert load.faults([], whole) == []
        assert "is lost" in load.faults([], [Entry(2, "record.0", "v2", 0)])[0]
        assert "expected 0" in load.faults([], [whole[0], Entry(2, "record.0", "v2", 0)])[0]


def test_a_write_is_stored_or_refused_and_the_client_knows_which(tmp_path):
    """A condition that does not hold is refused by its code, and so is a write that no stream takes."""
    async def story():
        client = await EngineClient.connect(*trio.urls)
        await client.make_stream(BOX)
        await client.make_stream(RECORDS)
        ledger = EngineLedger()
        first = await client.store(ledger, "record.a")
        codes = []
        for subject, expected in (("record.a", first.sequence + 7), ("nothing.a", 0)):
            write = ledger.begin(subject)
            await client.put(ledger, write, {"Nats-Expected-Last-Subject-Sequence": str(expected)})
            codes.append(write.refused)
        await client.close()
        return codes

    trio = NATSTrio(tmp_path)
    try:
        trio.start()
        # 10071: wrong last sequence. 503: nobody listens there.
        assert asyncio.run(story()) == [10071, 503]
    finally:
        trio.close()
