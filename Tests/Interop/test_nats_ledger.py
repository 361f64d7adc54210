"""A ledger of publishes while servers are killed: no answer lies, and a reader misses nothing."""

import collections
import contextlib
import threading
import time

import pytest

from nats_client import Ended, NATSClient
from nats_servers import NATSTrio

from service import PATIENCE, eventually

#: Publishes that are open at a time.
WINDOW = 100
#: Writes that a reader reads at once, in each round.
OWN = 30


class Publisher(threading.Thread):
    """Publishes numbered messages inside of `with`, and keeps each outcome. It ends with its client, too."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client = client
        self.outcomes = {}
        self.counts = collections.Counter()
        self.ends = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.join(2 * PATIENCE)

    def run(self):
        with contextlib.suppress(Ended):
            self.publish()

    def publish(self):
        number, waiting = 0, []
        while not self.ends.is_set() or waiting:
            while len(waiting) < WINDOW and not self.ends.is_set():
                number += 1
                waiting.append((number, self.client.send("store", b"%d" % number, subject=f"s.{number}", within=5)))
            number_of_oldest, order = waiting.pop(0)
            self.outcomes[number_of_oldest] = self.client.answer(order)
            self.counts[self.outcomes[number_of_oldest]["outcome"]] += 1
            if self.outcomes[number_of_oldest]["outcome"] == "notSent":
                # No connection: not a million refusals a second.
                self.ends.wait(0.02)


def read_own_writes(client, round_number):
    """Writes, and reads each write at once from whatever replica answers. Returns how many answers were behind."""
    behind = 0
    for number in range(OWN):
        subject = f"s.own.{round_number}.{number}"
        end = time.monotonic() + 2 * PATIENCE
        while (stored := client.ask("store", b"0", subject=subject))["outcome"] != "stored":
            assert time.monotonic() < end, stored
        while (answer := client.ask("bounded", stream="S", subjects=[subject], sequence=stored["sequence"], within=2))["outcome"] != "complete":
            # A replica that has not heard of the subject says so, which proves nothing. A busy one may be silent for a while.
            is_late = answer["outcome"] in ("behind", "nothing") or answer["kind"] in ("noResponders", "timeout")
            assert is_late and time.monotonic() < end, answer
            behind += 1
        assert [message["sequence"] for message in answer["messages"]] == [stored["sequence"]]
        assert answer["sequence"] >= stored["sequence"]
    return behind


@pytest.mark.slow
def test_every_outcome_is_true_while_servers_are_killed(tmp_path, rounds):
    trio = NATSTrio(tmp_path).start()
    try:
        # The follower has a connection for itself: it writes a line for each message, and what it has not written yet delays answers.
        with NATSClient(*trio.urls) as client, NATSClient(*trio.urls) as reader, NATSClient(*trio.urls) as follower:
            for each in (client, reader, follower):
                each.connected()
            configuration = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, "allow_direct": True}
            eventually(lambda: client.ask("create", configuration=configuration)["outcome"] == "done", what="a stream")
            stream = follower.send("follow", stream="S", subjects=["s.>"])
            behind = 0
            with Publisher(client) as publisher:
                for round_number in rounds:
                    stored = publisher.counts["stored"]
                    eventually(lambda: publisher.counts["stored"] > stored + 3 * WINDOW, 2 * PATIENCE, "progress")
                    victim = rounds.random(round_number).choice(trio.servers)
                    victim.kill()
                    stored = publisher.counts["stored"]
                    eventually(lambda: publisher.counts["stored"] > stored + WINDOW, 2 * PATIENCE, "progress without a server")
                    trio.start()
                    behind += read_own_writes(reader, round_number)
            assert not publisher.is_alive()
            last = client.done("info", stream="S")["info"]["last"]
            log, newest = {}, 0
            while newest < last:
                message = follower.message(stream)
                assert message["sequence"] > newest, "the order"
                newest = message["sequence"]
                log[newest] = int(message["payload"])
            places = {}
            for sequence, number in log.items():
                if number:
                    places.setdefault(number, []).append(sequence)
            assert all(len(each) == 1 for each in places.values()), "a message is in the stream twice"
            for number, outcome in publisher.outcomes.items():
                match outcome["outcome"]:
                    case "stored":
                        assert places.get(number) == [outcome["sequence"]], (number, outcome)
                    case "notSent":
                        assert number not in places, (number, outcome)
                    case "unknown":
                        pass
                    case other:
                        raise AssertionError((number, outcome, other))
            rounds.report(**{name: publisher.counts[name] for name in ("stored", "notSent", "unknown")}, behind=behind)
    finally:
        trio.close()
