"""Random histories of the whole service, each checked by the oracle."""

import traceback

import pytest

import model_oracle
from model_oracle import Arrival, Broadcast, Connection, Copy, History, JournalLine, Post
from machine_clock import MachineClock
from model_player import STEPS, TOPICS, Player, steps
from model_shrinker import shrink
from service import TOPIC

#: Histories on one data folder: as many as its clock can be moved ahead for without a certificate's end.
ON_ONE_FOLDER = 10


class Stage:
    """A service with a provider and enough devices: their certificates are made before its clock is moved."""

    def __init__(self, fresh, folder, histories=ON_ONE_FOLDER):
        self.machine = MachineClock(folder)
        service = fresh("--journal-days", "365", "--log-level", "warning", prefix=self.machine.prefix)
        self.service = service.start("--clock", "+0s")
        self.certificate = service.provider_certificate(*TOPICS)
        self.devices = [service.device(f"model-{number}") for number in range(2 * histories)]
        self.clock = 0

    def player(self, number):
        first = 2 * (number % ON_ONE_FOLDER)
        return Player(self.service, self.certificate, self.devices[first:first + 2], self.machine, self.clock)


def failure(player, made):
    """The kind of failure of a history and its description; nothing for a good one."""
    try:
        found = model_oracle.faults(player.play(made))
        return ("a broken promise", *found) if found else None
    except Exception as error:
        return type(error).__name__, traceback.format_exc()
    finally:
        player.close()


def shortest(fresh, folder, made, kind):
    """The shortest steps found that fail alike, each time on a service of their own."""

    def fails(some):
        stage = Stage(fresh, folder, histories=1)
        try:
            found = failure(stage.player(0), some)
        finally:
            stage.service.close()
        return found is not None and found[0] == kind

    return shrink(made, fails, tries=40)


@pytest.mark.slow
def test_every_history_keeps_the_promises(fresh, rounds, tmp_path):
    stage = None
    posts = arrivals = copies = 0
    for number in rounds:
        if stage is None or number % ON_ONE_FOLDER == 0:
            if stage:
                stage.service.close()
            stage = Stage(fresh, tmp_path)
        player, again, made = stage.player(number), rounds.again(number), steps(f"{rounds.seed}/{number}")
        found = failure(player, made)
        if found:
            print(again, *player.history.log, *found, "the shortest steps that fail alike:", sep="\n")
            print(*shortest(fresh, tmp_path, made, found[0]), sep="\n")
        assert not found, f"{again}: {found[0]}, the first: {found[1]}"
        stage.clock = player.clock
        posts, arrivals = posts + len(player.history.posts), arrivals + len(player.history.arrivals)
        copies += len(player.history.copies)
    rounds.report(histories=rounds.done, notifications=posts, arrivals=arrivals, copies=copies)
    # One history alone, played again, may be a quiet one.
    assert arrivals > 2 * rounds.done or rounds.done < 5
    assert stage.service.stop() == 0


AWAY, TWO_DAYS = ("drop", 0), 2 * 86_400
TROUBLES = {
    "a full disk": [
        ("post", 0, TOPIC, "plain", 2, False, 9, False), ("full", 0, TOPIC, 2, "acknowledge"), ("full", 0, TOPICS[1], 2, "drop"),
        ("post", 0, TOPIC, "plain", 1, False, 9, False), ("full", 0, TOPIC, 2, ""), ("full", 0, TOPIC, 1, "kill"),
    ],
    "a slow disk": [
        AWAY, ("slow",), ("post", 0, TOPIC, "plain", 2, False, 9, False), ("connect", 0, 5, False, 3600, None),
        ("post", 0, TOPICS[1], "plain", 2, True, 9, False), AWAY, ("post", 0, TOPIC, "plain", 1, False, 9, False),
        ("kill", 2, 0, TOPIC),
    ],
    "a clock that jumps back": [
        AWAY, ("post", 0, TOPIC, "plain", 1, False, 9, False), ("jump", TWO_DAYS), ("accept",),
        ("post", 0, TOPIC, "expiring", 2, False, 300, False), ("jump", 0), ("connect", 0, 5, False, 3600, None),
        ("post", 0, TOPICS[1], "plain", 2, False, 9, False), ("stop",),
    ],
    # A notification that expired at a time that was certain does not come back with an earlier one.
    "an expiry before a jump back": [
        AWAY, ("jump", TWO_DAYS), ("accept",), ("post", 0, TOPIC, "expiring", 2, False, 300, False), ("advance", 5000), ("jump", 0),
    ],
}


@pytest.mark.slow
def test_each_trouble_breaks_no_promise(fresh, tmp_path):
    stage = Stage(fresh, tmp_path, histories=len(TROUBLES))
    seen = {}
    for number, (trouble, made) in enumerate(TROUBLES.items()):
        player = stage.player(number)
        found = failure(player, steps("trouble", 4) + made)
        assert not found, "\n".join([trouble, *player.history.log, *found])
        stage.clock, seen[trouble] = player.clock, player.history.posts.values()
    assert any(post.status == 503 for post in seen["a full disk"])
    assert any(post.sync for post in seen["a slow disk"])
    assert stage.service.stop() == 0


class TestShrinker:
    """A wrong oracle, which takes a post after a kill for a broken promise."""

    def fails(self, some):
        kinds = [step[0] for step in some]
        return "kill" in kinds and "post" in kinds[kinds.index("kill"):]

    def made(self):
        return next(made for made in (steps(f"shrink/{number}") for number in range(100)) if self.fails(made))

    def test_a_history_is_shrunk_to_what_makes_it_fail(self):
        kill, post = shrink(self.made(), self.fails, tries=500)
        assert kill[:2] == ("kill", 0)
        assert (post[0], *post[3:]) == ("post", "plain", 1, False, 9, False)

    def test_a_shrunk_history_always_fails(self):
        for tries in (0, 1, 5, 20):
            asked = []
            least = shrink(self.made(), lambda some: asked.append(some) or self.fails(some), tries=tries)
            assert self.fails(least) and len(asked) <= tries

    def test_a_failure_that_needs_every_step_keeps_them(self):
        made = self.made()
        assert shrink(made, lambda some: some == made) == made


class TestOracle:
    """Histories with one fault, which the oracle finds."""

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

    def test_a_notification_never_seen_is_lost(self):
        self.assert_found(self.history("a+", "a=", "a!", "a.", "b+", "b="), "b (storable")
        self.assert_found(self.history("a+", "a=", "a!", "a.", "b+", "b="), "is lost")

    def test_a_replaced_notification_is_not_lost(self):
        history = self.history("a+", "a=", "b+", "b=", "b!", "b.")
        self.journal(history, "a", "replaced", replacement="b")
        assert model_oracle.faults(history) == []

    def test_an_end_missing_in_the_journal(self):
        self.assert_found(self.history("a+", "a=", "b+", "b=", "b!", "b."), "a (storable, generation 0, 2..3: 200) has no end")

    def test_an_older_notification_after_a_newer_on_one_connection(self):
        self.assert_found(self.history("a+", "a=", "b+", "b=", "b!", "b.", "a!", "a."), "came after the newer")

    def test_an_older_notification_from_storage(self):
        self.assert_found(self.history("a+", "a=", "b+", "b=", "b!", "b.", "|", "a!", "a."), "had replaced it")

    def test_a_notification_delivered_twice(self):
        self.assert_found(self.history("a+", "a=", "a!", "a!", "a."), "came twice")
        self.assert_found(self.history("a+", "a=", "a!", "a.", "|", "a!"), "came again")

    def test_an_acknowledgement_lost_in_a_kill_allows_a_second_delivery(self):
        history = self.history("a+", "a=", "a!")
        history.arrivals[0].acknowledged, history.arrivals[0].settled = history.place(), history.place()
        history.killed()
        history.written.append(history.place())
        history.connections.append(Connection(2, "device", history.place()))
        history.arrivals.append(Arrival("a", history.connections[1], history.place(), 1, 0))
        assert model_oracle.faults(history) == []
        history.kills.clear()
        self.assert_found(history, "came again")

    def test_an_unstored_notification_in_storage(self):
        self.assert_found(self.history("a0", "a=", "|", "a!", "a."), "came to a later connection")

    def test_a_notification_for_a_dead_registration(self):
        self.assert_found(self.history("a+", "a=", "~", "a!", "a."), "registration that had ended")

    def test_an_unexpected_answer(self):
        history = self.history("a+", "a=", "a!", "a.")
        history.posts["a"].alive = False
        self.assert_found(history, "was answered 200")

    def test_a_notification_after_its_expiration(self):
        history = self.history("a+", "a=", "a!", "a.")
        history.posts["a"].expires, history.arrivals[0].not_before, history.now = 5000, 5001, 6000
        assert model_oracle.faults(history) == []
        history.arrivals[0].not_before = 5000 + model_oracle.TOLERANCE
        self.assert_found(history, "after its time")

    def test_more_in_flight_than_the_receive_maximum(self):
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
    def test_a_false_journal_line(self, state, reason, words):
        history = self.history("a+", "a=")
        self.journal(history, "a", state, reason=reason)
        self.assert_found(history, words)

    def test_an_impossible_replacement(self):
        history = self.history("a+", "a=", "b+", "b=", "b!", "b.")
        self.journal(history, "b", "replaced", replacement="a")
        self.assert_found(history, "was replaced, by the journal, by")

    @pytest.mark.parametrize(
        ("numbers", "status", "words"),
        [([2, 1], 200, "came after the newer"), ([1], 503, "was refused, and delivered"), ([1], 200, "did not get it")],
    )
    def test_a_fault_of_a_channel(self, numbers, status, words):
        history = self.history()
        history.broadcasts = [Broadcast(1, "c", True, status, kept=10), Broadcast(2, "c", status == 200, status, kept=10)]
        history.copies = [Copy(history.broadcasts[number - 1], history.connections[0]) for number in numbers]
        history.listeners["device", "c"] = 9
        self.assert_found(history, words)
        history.broadcasts[0].status = history.broadcasts[1].status = 200
        history.copies = [Copy(one, history.connections[0]) for one in history.broadcasts]
        assert model_oracle.faults(history) == []

    def test_a_broadcast_is_owed_until_its_time_is_over(self):
        history = self.history()
        history.broadcasts = [Broadcast(1, "c", True, 200, kept=10)]
        history.listeners["device", "c"] = 9
        self.assert_found(history, "did not get it")
        history.listeners["device", "c"] = 10
        assert model_oracle.faults(history) == []

    def test_a_drill_explains_its_refusal_only(self):
        history = self.history("a+", "a=")
        post = history.posts["a"]
        post.drilled, post.status, post.reason = True, *model_oracle.DRILL
        assert model_oracle.faults(history) == []
        post.drilled = False
        self.assert_found(history, "was answered 503")

    def test_a_full_disk_explains_its_refusals_only(self):
        history = self.history("a+", "a=", "b+", "b=", "b!", "b.")
        self.journal(history, "a", "replaced", replacement="b")
        refused = history.posts["b"]
        refused.full, refused.status, refused.reason = True, *model_oracle.UNSTORED
        assert model_oracle.faults(history) == []
        refused.full = False
        self.assert_found(history, "was answered 503")
        self.assert_found(history, "was refused, and delivered")
        self.assert_found(history, "a (storable, generation 0, 2..3: 200) is lost")

    def test_an_answer_before_the_sync(self):
        history = self.history("a+", "a=", "a!", "a.")
        history.posts["a"].sync, history.posts["a"].seconds = 0.05, 0.06
        assert model_oracle.faults(history) == []
        history.posts["a"].seconds = 0.04
        self.assert_found(history, "before the sync")

    def test_only_losses_that_a_kill_explains_are_excused(self):
        history = self.history("a+", "a=", "a!", "a.", "b+", "b=", "b!")
        history.arrivals[-1].acknowledged = history.place()
        history.killed()
        assert [post.uncertain for post in history.posts.values()] == [False, True]
        assert model_oracle.faults(history) == []


def test_a_seed_repeats_the_steps():
    assert steps("1/1") == steps("1/1") != steps("1/2")
    assert len(steps("1/1")) == STEPS >= 50
