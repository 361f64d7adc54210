"""Which reads of a replicated stream are fresh: those that are bounded by a write, and no others."""

import asyncio
import json

from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NATSTimeoutError

from engine_client import BOX, EngineClient
from engine_ledger import EngineLedger
from nats_servers import NATSTrio
from service import PATIENCE

#: Reads of each kind that wait for a paused leader.
READS = 20
#: Rounds after which a stale answer of each kind must have been seen. About two in five leaders give one.
ENOUGH = 20


async def ask_resumed_leader(trio):
    """Asks a leader that was paused while the others chose another one and stored something.

    Returns how many of its leader reads and how many direct reads were older than that, and what a read behind a barrier says: the
    sequences that it found and the one that was acknowledged.
    """
    ledger = EngineLedger()
    client = await EngineClient.connect(*trio.urls)
    await client.make_stream(BOX)
    await client.store(ledger, "box.slot")
    old = trio.named((await client.information("BOX"))["cluster"]["leader"])
    elsewhere = await EngineClient.connect(*(server.url for server in trio.servers if server is not old))
    # It does not give the paused server up.
    direct = await EngineClient.connect(old.url, ping=60)
    inbox = direct.connection.new_inbox()
    answers = await direct.connection.subscribe(inbox)
    old.pause()
    try:
        second = await elsewhere.store(ledger, "box.slot")
        # They wait in the socket. The old leader reads them before it learns that it is none.
        for _ in range(READS):
            await direct.connection.publish("$JS.API.STREAM.MSG.GET.BOX", b'{"last_by_subj": "box.slot"}', reply=inbox)
        for _ in range(READS):
            await direct.connection.publish("$JS.API.DIRECT.GET.BOX", b'{"last_by_subj": "box.slot"}', reply=inbox)
    finally:
        old.resume()
    leader_reads, direct_reads = await past(answers, second.sequence)
    barrier = await direct.store(ledger, "box.barrier")
    async with asyncio.timeout(PATIENCE):
        answer = None
        while not answer or answer[1] < barrier.sequence:
            answer = await direct.newest("BOX", ["box.slot", "box.barrier"])
    for each in (client, elsewhere, direct):
        await each.close()
    return leader_reads, direct_reads, {subject: sequence for sequence, subject, _ in answer[0]}, second.sequence


async def past(answers, sequence):
    """How many leader reads and how many direct reads answered with something older than a sequence."""
    leader_reads = direct_reads = 0
    for _ in range(2 * READS):
        try:
            message = await answers.next_msg(1)
        except (NATSTimeoutError, NoRespondersError):
            continue
        if "Nats-Sequence" in (message.headers or {}):
            direct_reads += int(message.headers["Nats-Sequence"]) < sequence
        elif not message.headers:
            # Or it says that nobody leads.
            entry = json.loads(message.data).get("message")
            leader_reads += bool(entry) and entry["seq"] < sequence
    return leader_reads, direct_reads


def test_a_read_behind_a_barrier_is_fresh_where_a_leader_answers_with_the_past(tmp_path, rounds):
    trio = NATSTrio(tmp_path)
    stale_leaders = stale_replicas = 0
    try:
        for _ in rounds:
            trio.start()
            leader_reads, direct_reads, found, sequence = asyncio.run(ask_resumed_leader(trio))
            stale_leaders += leader_reads > 0
            stale_replicas += direct_reads > 0
            assert found["box.slot"] == sequence
    finally:
        trio.close()
    # Without a stale answer the barrier would show nothing.
    assert rounds.count < ENOUGH or (stale_leaders and stale_replicas)
    rounds.report(stale_leader_reads=stale_leaders, stale_direct_reads=stale_replicas, stale_reads_behind_a_barrier=0)


def test_an_answer_without_matches_names_no_bound(tmp_path):
    """So a bounded read must name a record that exists, such as the barrier itself."""
    async def story():
        client = await EngineClient.connect(*trio.urls)
        await client.make_stream(BOX)
        barrier = await client.store(EngineLedger(), "box.barrier")
        nothing = await client.newest("BOX", ["box.absent"])
        both = None
        async with asyncio.timeout(PATIENCE):
            while not both or both[1] < barrier.sequence:
                both = await client.newest("BOX", ["box.absent", "box.barrier"])
        await client.close()
        return nothing, both, barrier

    trio = NATSTrio(tmp_path)
    try:
        trio.start()
        nothing, (found, up_to), barrier = asyncio.run(story())
    finally:
        trio.close()
    assert nothing is None
    assert [entry[0] for entry in found] == [barrier.sequence] and up_to >= barrier.sequence
