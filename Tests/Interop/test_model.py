"""Random histories of the whole service, and the promises held against each.

HERALD_MODEL_SEED repeats a run, HERALD_MODEL_HISTORIES makes it longer (histories are played until the time is up unless it
is set), and HERALD_MODEL_STEPS says how many steps each has.
"""

import os
import random
import time

import pytest

import model_oracle
from model_oracle import Arrival, Connection, History, JournalLine, Post
from model_player import STEPS, TOPICS, Player, steps
from service import TOPIC

# Taken out of the environment: Herald warns of variables that look like its own and are not.
SEED = int(os.environ.pop("HERALD_MODEL_SEED", random.randrange(1 << 32)))
HISTORIES = int(os.environ.pop("HERALD_MODEL_HISTORIES", "0"))
FIRST = int(os.environ.pop("HERALD_MODEL_FIRST", "0"))
LENGTH = int(os.environ.pop("HERALD_MODEL_STEPS", str(STEPS)))
#: Seconds after which no further history is begun, where their number is not given.
ENOUGH = 45
#: Histories on one data folder: as many as its clock can be moved ahead for without a certificate's end.
ON_ONE_FOLDER = 10


def numbers():
    """The numbers of the histories to play."""
    end = time.monotonic() + ENOUGH
    number = FIRST
    while number < FIRST + HISTORIES if HISTORIES else time.monotonic() < end:
        yield number
        number += 1


class Stage:
    """A service with a provider and enough devices: their certificates are made before its clock is moved."""

    def __init__(self, service):
        self.service = service.start("--clock", "+0s")
        self.certificate = service.provider_certificate(*TOPICS)
        self.devices = [service.device(f"model-{number}") for number in range(2 * ON_ONE_FOLDER)]
        self.clock = 0

    def player(self, number):
        first = 2 * (number % ON_ONE_FOLDER)
        return Player(self.service, self.certificate, self.devices[first:first + 2], self.clock)


@pytest.mark.slow
@pytest.mark.timeout(120 + 20 * HISTORIES)
def test_every_history_keeps_the_promises(fresh):
    print(f"HERALD_MODEL_SEED={SEED}")
    stage = None
    played = posts = arrivals = 0
    for number in numbers():
        if stage is None or number % ON_ONE_FOLDER == 0:
            if stage:
                stage.service.close()
            stage = Stage(fresh("--journal-days", "365", "--log-level", "warning"))
        # A history's seed is that of the run and its number, so that one alone can be played again.
        player = stage.player(number)
        again = f"HERALD_MODEL_SEED={SEED} HERALD_MODEL_FIRST={number} HERALD_MODEL_HISTORIES=1"
        try:
            history = player.play(steps(f"{SEED}/{number}", LENGTH))
        except BaseException:
            print(again, *player.history.log[-60:], sep="\n")
            raise
        finally:
            player.close()
        found = model_oracle.faults(history)
        if found:
            print(again, *history.log, *found, sep="\n")
        assert not found, f"{again}: {len(found)} promises broken, the first: {found[0]}"
        stage.clock, played = player.clock, played + 1
        posts, arrivals = posts + len(history.posts), arrivals + len(history.arrivals)
    print(f"{played} histories, {posts} notifications, {arrivals} arrivals")
    # One history alone, played again, may be a quiet one.
    assert arrivals > 2 * played or played < 5
    assert stage.service.stop() == 0


class TestTheOracleItself:
    """It finds what it is there to find; each history is a good one with one thing wrong."""

    def history(self, *steps):
        """A history of one device in steps: `a+` posts a (`a0`: not to be stored), `a=` answers it with 200, `a!` delivers
        it, `a.` acknowledges it (which is surely written), `|` is another connection, `~` ends the registration.
        """
        history, generation = History(), 0
        history.connections = [Connection(1, "device", history.place())]
        for step in steps:
            if step == "|":
                history.connections[-1].closed = history.place()
                history.connections.append(Connection(len(history.connections) + 1, "device", history.place()))
                continue
            if step == "~":
                history.ended["device", TOPIC, generation] = history.place()
                generation += 1
                continue
            id, what = step[:-1], step[-1]
            if what in "+0":
                history.posts[id] = Post(
                    id, "device", TOPIC, generation, True, what == "+", True, begun=history.place()
                )
                self.journal(history, id, "received")
            elif what == "=":
                history.posts[id].answered, history.posts[id].status = history.place(), 200
            elif what == "!":
                history.arrivals.append(Arrival(id, history.connections[-1], history.place(), 1, 0))
            else:
                arrival = next(found for found in history.arrivals if found.id == id)
                arrival.acknowledged, arrival.settled = history.place(), history.place()
                history.written.append(history.place())
                self.journal(history, id, "delivered")
        return history

    def journal(self, history, id, state, **more):
        history.journal.append(JournalLine(id, state, more.pop("time", 0), **more))

    def faults(self, *steps):
        return model_oracle.faults(self.history(*steps))

    def assert_found(self, history, words):
        found = model_oracle.faults(history)
        assert any(words in fault for fault in found), found

    def test_a_good_history_has_no_fault(self):
        assert self.faults("a+", "a=", "a!", "a.", "b+", "b=", "|", "b!", "b.") == []

    def test_one_that_nobody_saw_is_lost(self):
        self.assert_found(self.history("a+", "a=", "a!", "a.", "b+", "b="), "b (storable")
        self.assert_found(self.history("a+", "a=", "a!", "a.", "b+", "b="), "is lost")

    def test_a_replaced_one_is_not_lost(self):
        history = self.history("a+", "a=", "b+", "b=", "b!", "b.")
        self.journal(history, "a", "replaced", replacement="b")
        assert model_oracle.faults(history) == []

    def test_an_end_that_the_journal_does_not_tell(self):
        self.assert_found(self.history("a+", "a=", "b+", "b=", "b!", "b."), "a (storable, generation 0, 2..3: 200) has no end")

    def test_an_older_one_after_a_newer_on_one_connection(self):
        self.assert_found(self.history("a+", "a=", "b+", "b=", "b!", "b.", "a!", "a."), "came after the newer")

    def test_an_older_one_from_storage(self):
        self.assert_found(self.history("a+", "a=", "b+", "b=", "b!", "b.", "|", "a!", "a."), "had replaced it")

    def test_one_that_comes_twice(self):
        self.assert_found(self.history("a+", "a=", "a!", "a!", "a."), "came twice")
        self.assert_found(self.history("a+", "a=", "a!", "a.", "|", "a!"), "came again")

    def test_what_a_kill_may_have_lost_may_come_again(self):
        history = self.history("a+", "a=", "a!")
        history.arrivals[0].acknowledged, history.arrivals[0].settled = history.place(), history.place()
        history.killed()
        history.written.append(history.place())
        history.connections.append(Connection(2, "device", history.place()))
        history.arrivals.append(Arrival("a", history.connections[1], history.place(), 1, 0))
        assert model_oracle.faults(history) == []
        history.kills.clear()
        self.assert_found(history, "came again")

    def test_one_that_was_not_to_be_stored_and_was(self):
        self.assert_found(self.history("a0", "a=", "|", "a!", "a."), "came to a later connection")

    def test_one_for_a_dead_registration(self):
        self.assert_found(self.history("a+", "a=", "~", "a!", "a."), "registration that had ended")

    def test_an_answer_that_does_not_fit(self):
        history = self.history("a+", "a=", "a!", "a.")
        history.posts["a"].alive = False
        self.assert_found(history, "was answered 200")

    def test_one_after_its_time(self):
        history = self.history("a+", "a=", "a!", "a.")
        history.posts["a"].expires, history.arrivals[0].not_before, history.now = 5000, 5001, 6000
        assert model_oracle.faults(history) == []
        history.arrivals[0].not_before = 5000 + model_oracle.TOLERANCE
        self.assert_found(history, "after its time")

    def test_more_in_flight_than_the_device_allows(self):
        history = self.history("a+", "a=", "a!", "b+", "b=", "b!", "a.", "b.")
        assert model_oracle.faults(history) == []
        history.connections[0].window = 1
        self.assert_found(history, "2 were in flight")

    @pytest.mark.parametrize(
        ("state", "reason", "words"),
        [
            ("delivered from storage", None, "was not acknowledged"),
            ("delivered, unacknowledged", None, "was not seen at QoS 0"),
            ("discarded", "expired", "as expired"),
            ("discarded from storage", "unregistered", "the app is there"),
            ("discarded", "disabled", "as disabled"),
            ("discarded", "not to be stored, and the device was away", "as not to be stored"),
            ("discarded", "a whim", "nothing in this history explains"),
        ],
    )
    def test_a_line_of_the_journal_that_is_not_true(self, state, reason, words):
        history = self.history("a+", "a=")
        self.journal(history, "a", state, reason=reason)
        self.assert_found(history, words)

    def test_a_replacement_that_cannot_be(self):
        history = self.history("a+", "a=", "b+", "b=", "b!", "b.")
        self.journal(history, "b", "replaced", replacement="a")
        self.assert_found(history, "was replaced, by the journal, by")

    def test_what_a_kill_may_have_lost_is_excused_and_no_more(self):
        history = self.history("a+", "a=", "a!", "a.", "b+", "b=", "b!")
        history.arrivals[-1].acknowledged = history.place()
        history.killed()
        assert [post.uncertain for post in history.posts.values()] == [False, True]
        assert model_oracle.faults(history) == []


def test_a_seed_makes_the_same_steps():
    assert steps("1/1") == steps("1/1") != steps("1/2")
    assert len(steps("1/1")) == STEPS >= 50
