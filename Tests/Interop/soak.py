"""Tests that repeat for endurance: `make test` runs a few rounds of each, `make soak` runs them for hours.

As a pytest plugin it gives such a test its `rounds`. As a program it runs parts again and again:

    soak.py                runs all parts, each for its own time, and ends with a table
    soak.py TIME           the same, in so much time for all (90s, 30m, 2h)
    soak.py PART [TIME]    runs one part, for its own time or for another
    soak.py list           lists the parts, and earlier results

A run goes on where the last one stopped. A part ends with its first failure; the other parts go on. Results are added to
.build/soak/results.jsonl, one line for each batch of rounds.
"""

import collections
import dataclasses
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".build" / "soak"
#: The seed of every run: round 17 of a part is the same round on each machine, and `make test` plays the same few each time.
SEED = "soak"


@dataclasses.dataclass(frozen=True)
class Part:
    """A test that repeats, and how often."""

    test: str
    #: The nature of one round, and the promise that all rounds show.
    of: str
    shows: str
    #: Rounds in `make test`; with none the test is not part of it.
    few: int
    #: Rounds of one batch in `make soak`.
    batch: int
    #: Seconds that one round takes on two cores, in a debug build.
    seconds: float
    #: Minutes of a `make soak` of all parts.
    minutes: int = 10
    #: The environment variable that tells a Swift test its rounds, as FIRST:COUNT; `test` is then the filter of `swift test`.
    variable: str | None = None
    #: Whether `test` is a program instead, built for release. Its arguments are FIRST and COUNT.
    is_program: bool = False

    def command(self, name, first, count):
        """The command that plays rounds, and what it adds to the environment."""
        if self.is_program:
            return [ROOT / ".build" / "release" / self.test, str(first), str(count)], {}
        if self.variable:
            settings = {"HERALD_DEVELOPMENT": "1", self.variable: f"{first}:{count}"}
            return ["swift", "test", "--skip-build", "--filter", self.test], settings
        return [
            sys.executable, "-m", "pytest", f"Tests/Interop/{self.test}", "-s", "-p", "no:cacheprovider",
            "--rounds", f"{name}={count}@{first}", "--seed", SEED,
        ], {}


PARTS = {
    "crash": Part(
        "test_crash_ledger.py::test_no_accepted_notification_is_forgotten", "kill -9 of the service under load",
        "no answered notification is lost", 5, 100, 1.5, 15,
    ),
    "cluster-crash": Part(
        "test_cluster_node.py::test_no_accepted_notification_is_forgotten_in_a_cluster",
        "kill -9 of a cluster's node, and of some or all of its NATS servers, under load",
        "no answered notification is lost", 2, 25, 15, 20,
    ),
    "cluster-servers": Part(
        "test_cluster_servers.py::test_killed_servers_cost_nothing_that_was_accepted",
        "kill -9 of one of the NATS servers of a node, under load", "no accepted notification is lost", 6, 50, 8,
    ),
    "cluster-servers-all": Part(
        "test_cluster_servers.py::test_three_servers_killed_at_once_cost_nothing_that_was_accepted",
        "kill -9 of all NATS servers of a node, under load", "no accepted notification is lost", 3, 30, 10,
    ),
    "cluster-disks": Part(
        "test_cluster_servers.py::test_bad_disks_cost_nothing_that_was_accepted",
        "full or failing disks of the NATS servers of a node, under load", "no accepted notification is lost", 1, 12, 20, 5,
    ),
    "cluster-networks": Part(
        "test_cluster_networks.py::test_partitions_and_pauses_cost_nothing",
        "three nodes and three NATS servers, of which some cannot reach others, or are paused, under load",
        "nothing is lost, displaced or out of order", 5, 25, 15, 20,
    ),
    "cluster-nodes": Part(
        "test_cluster_networks.py::test_killed_nodes_cost_nothing", "kill -9 of one or two of three nodes under load",
        "nothing is lost, displaced or out of order", 6, 50, 5,
    ),
    "cluster-restarts": Part(
        "test_cluster_networks.py::test_a_rolling_restart_costs_nothing",
        "three NATS servers and three nodes restarted one by one under load", "nothing is lost, displaced or out of order", 1, 10, 20,
    ),
    "cluster-moves": Part(
        "test_cluster_moves.py::test_devices_that_move_between_nodes_under_load_miss_nothing",
        "a device that moves to another node of a cluster, or its clone that comes too, under load",
        "nothing is lost or out of order, and older connections end", 100, 500, 0.3,
    ),
    "cluster-tokens": Part(
        "test_cluster_moves.py::test_a_token_made_at_one_node_is_good_at_the_others_at_once",
        "a token made at one node of a cluster and used at the others at once, until its app is gone",
        "no good token is refused, and each dead one is", 200, 2000, 0.1,
    ),
    "cluster-revocation": Part(
        "test_cluster_moves.py::test_a_revocation_is_in_force_at_all_nodes_in_time",
        "a device revoked at one node of a cluster, and connected to another", "the revocation is in force everywhere in time",
        20, 250, 1, 5,
    ),
    "binary-crash": Part(
        "test_binary_crash.py::test_answered_notifications_survive_a_kill",
        "kill -9 of the service under load on the binary interface", "no accepted notification is lost", 3, 100, 1.5,
    ),
    "relay-crash": Part(
        "test_relay_crash.py::test_kill_9_loses_nothing_and_doubles_nothing", "kill -9 of a relay that drains a queue",
        "no row is lost or sent twice", 4, 100, 1.5,
    ),
    "activation-crash": Part(
        "test_activation.py::TestCrash::test_a_kill_leaves_code_and_device_consistent",
        "kill -9 of the service during an activation", "code and device are consistent", 4, 100, 1, 5,
    ),
    "nats-client": Part(
        "test_nats_ledger.py::test_every_outcome_is_true_while_servers_are_killed",
        "kill -9 of a NATS server under the client's load", "no outcome lies, and a reader misses nothing", 1, 20, 17,
    ),
    "model": Part(
        "test_model.py::test_every_history_keeps_the_promises", "random histories, checked by the oracle",
        "every promise holds in random histories", 3, 50, 10, 20,
    ),
    "reconnect": Part(
        "test_agent_reconnect.py::test_no_notification_is_lost_or_shown_twice_through_a_hundred_cuts",
        "cuts of an agent's connection, in every way", "nothing is lost or shown twice", 20, 100, 0.5, 5,
    ),
    "crowds": Part(
        "test_api_slow.py::test_memory_is_released_after_a_crowd", "crowds of 200 connections with 200 streams each",
        "the memory comes back", 2, 100, 2, 5,
    ),
    "revocation": Part(
        "test_device_trust.py::test_every_revocation_takes_effect_at_once",
        "a device revoked while it is connected and connects", "no connection outlives a revocation", 3, 1000, 0.6,
    ),
    "sweep": Part(
        "FaultSweepTests", "the store's disk calls failing, every eighth in each round", "no failing disk call is fatal",
        1, 8, 30, variable="HERALD_SWEEP_ROUNDS",
    ),
    "simulation": Part(
        "HeraldSimulation", "histories of a simulated cluster of several nodes", "no history loses, displaces or refuses wrongly",
        0, 50_000, 0.01, is_program=True,
    ),
    "engine": Part(
        "test_engine.py::test_servers_that_are_killed_and_paused_lose_nothing",
        "one of three NATS servers killed or paused under load", "no acknowledged write is lost", 2, 50, 5, 10,
    ),
    "engine-all": Part(
        "test_engine.py::test_three_servers_that_are_killed_at_once_lose_nothing",
        "all three NATS servers killed at once under load", "no acknowledged write is lost", 1, 20, 7, 10,
    ),
    "power": Part(
        "test_power.py::test_a_power_cut_forgets_no_answered_notification", "power cuts of a virtual machine under load",
        "no answered notification is lost", 0, 30, 60, 30,
    ),
    "engine-reads": Part(
        "test_engine_reads.py::test_a_read_behind_a_barrier_is_fresh_where_a_leader_answers_with_the_past",
        "a leader paused until another is elected, and asked when it resumes", "no read behind a barrier is stale", 1, 30, 8, 5,
    ),
    "engine-disks": Part(
        "test_engine_disks.py::test_bad_disks_lose_nothing", "a slow, full, failing, lost or outdated disk of a NATS server under load",
        "no acknowledged write is lost", 2, 24, 10, 5,
    ),
    "engine-power": Part(
        "test_engine_power.py::test_a_power_cut_of_all_servers_loses_nothing",
        "power cuts of a machine with all three NATS servers under load", "no acknowledged write is lost", 0, 20, 40, 15,
    ),
    "engine-power-one": Part(
        "test_engine_power.py::test_a_power_cut_of_one_server_loses_nothing",
        "power cuts of a machine with one of three NATS servers, which is needed", "no acknowledged write is lost", 0, 20, 40, 15,
    ),
    "exam": Part(
        "test_exam.py::test_the_controls_get_the_same_verdicts_each_time", "all controls of the exam at once, on a busy machine",
        "each control gets its verdicts", 0, 10, 90, 15,
    ),
    "slopes": Part(
        "test_slopes.py::test_nothing_grows", "ten seconds of coming and going, all in one batch",
        "memory, descriptors, threads and files do not grow", 0, 1_000_000, 10, 60,
    ),
    "cluster-slopes": Part(
        "test_cluster_slopes.py::test_nothing_grows_in_a_cluster", "ten seconds of coming and going at three nodes, all in one batch",
        "nodes and NATS servers do not grow", 0, 1_000_000, 10, 60,
    ),
}


class Rounds:
    """The numbers of the rounds to play; a test derives all chance in a round from the seed and its number."""

    def __init__(self, part, first, count, seed):
        self.part, self.first, self.count, self.seed = part, first, count, seed
        #: Rounds that are over.
        self.done = 0

    def __iter__(self):
        for number in range(self.first, self.first + self.count):
            yield number
            self.done += 1

    @property
    def are_few(self):
        """Whether they are as few as in `make test`, where other tests run beside them."""
        return self.count <= PARTS[self.part].few

    def random(self, *names):
        """A random source for something that happens in these rounds."""
        return random.Random("/".join(map(str, (self.seed, *names))))

    @staticmethod
    def report(**figures):
        """Adds figures to the table of `make soak`; numbers are summed over batches."""
        print(f"\nfigures {json.dumps(figures)}", flush=True)

    def again(self, number=None):
        """The options with which pytest plays these rounds, or one of them, again."""
        what = f"{self.count}@{self.first}" if number is None else f"1@{number}"
        return f"--rounds {self.part}={what} --seed {self.seed}"


# The plugin.


def pytest_addoption(parser):
    group = parser.getgroup("rounds")
    group.addoption(
        "--rounds", action="append", default=[], metavar="PART=COUNT[@FIRST]", help="how many rounds of a part are played"
    )
    group.addoption("--seed", help="the seed of all rounds (that of the soak unless given)")


def part_of(item):
    """The name of the part that a test is."""
    return next(name for name, part in PARTS.items() if item.nodeid.endswith(part.test))


def rounds_of(item):
    name = part_of(item)
    told = dict(option.split("=", 1) for option in item.config.getoption("rounds"))
    assert told.keys() <= PARTS.keys(), f"--rounds knows {', '.join(PARTS)}"
    count, _, first = told.get(name, str(PARTS[name].few)).partition("@")
    seed = item.config.getoption("seed") or SEED
    return Rounds(name, int(first or 0), int(count), seed)


def pytest_collection_modifyitems(config, items):
    for item in list(items):
        if "rounds" in getattr(item, "fixturenames", ()):
            item.rounds = rounds_of(item)
            if item.rounds.count == 0:
                items.remove(item)
                config.hook.pytest_deselected(items=[item])
            # A busy machine may take ten times as long.
            item.add_marker(pytest.mark.timeout(120 + 10 * item.rounds.count * PARTS[item.rounds.part].seconds))


@pytest.fixture
def rounds(request):
    """The rounds that a test plays."""
    print(request.node.rounds.again())
    return request.node.rounds


# The program.


def seconds_in(text):
    units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
    if not text[:-1].isdigit() or text[-1] not in units:
        sys.exit(f"soak: {text!r} is not a time: write 90s, 30m or 2h")
    return int(text[:-1]) * units[text[-1]]


def results():
    file = FOLDER / "results.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def commit():
    """The commit, with a + if the tree differs from it."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain") else "")


def play(name, first, count):
    """Plays a batch, and adds its result. Returns it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = FOLDER / f"{name}-{first}.log"
    began = time.monotonic()
    command, settings = PARTS[name].command(name, first, count)
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | settings, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            # pytest ends a test that hangs before this.
            code = process.wait(timeout=1200 + 10 * count * PARTS[name].seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    figures = {}
    for found in re.findall(r"^figures (\{.*\})$", log.read_text(errors="replace"), re.M):
        figures |= json.loads(found)
    result = {
        "part": name, "commit": commit(), "first": first, "rounds": count, "passed": code == 0,
        "seconds": round(time.monotonic() - began), "figures": figures,
    }
    if code == 0:
        log.unlink()
    with (FOLDER / "results.jsonl").open("a") as file:
        file.write(json.dumps(result) + "\n")
    print(f"{name} {first}…{first + count - 1}: {'passed' if code == 0 else f'FAILED, see {log}'} ({result['seconds']} s)", flush=True)
    return result


def soak(name, seconds):
    """Plays a part for a time, or until it fails; returns the results of its batches."""
    end = time.monotonic() + seconds
    pace = PARTS[name].seconds
    before = [result["first"] + result["rounds"] for result in results() if result["part"] == name]
    first = max(before, default=0)
    played = []
    # Once at least; not again for less than a round.
    while (left := end - time.monotonic()) > pace or not played:
        played.append(play(name, first, max(1, min(PARTS[name].batch, round(left / pace)))))
        first += played[-1]["rounds"]
        if not played[-1]["passed"]:
            break
        pace = max(played[-1]["seconds"] / played[-1]["rounds"], 0.001)
    return played


def table(rows):
    """The lines of a table; the last column is not padded."""
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def clock(seconds):
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def figures_of(played):
    """The figures of all batches as text: numbers are summed, of texts the last one counts."""
    sums = {}
    for name, value in (pair for result in played for pair in result["figures"].items()):
        sums[name] = sums[name] + value if isinstance(value, (int, float)) and name in sums else value
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sums.items())


def summary(runs):
    """The table of a run: each part with the results of its batches."""
    rows = [("PART", "RESULT", "TIME", "ROUNDS", "SHOWS", "FIGURES")]
    for name, played in runs.items():
        rows.append((
            name, "passed" if all(result["passed"] for result in played) else "FAILED",
            clock(sum(result["seconds"] for result in played)), sum(result["rounds"] for result in played if result["passed"]),
            PARTS[name].shows, figures_of(played),
        ))
    return table(rows)


def run(seconds):
    """Runs parts, each for its seconds, and prints the table; whether all passed."""
    runs = {}
    try:
        for name, time_of_part in seconds.items():
            runs[name] = soak(name, time_of_part)
    except KeyboardInterrupt:
        print("interrupted")
    text = "\n".join([f"commit {commit()}", *summary(runs)])
    (FOLDER / "table.txt").write_text(text + "\n")
    print(f"\n{text}")
    return len(runs) == len(seconds) and all(result["passed"] for played in runs.values() for result in played)


def list_parts():
    rows = [("PART", "MAKE TEST", "BATCH", "MINUTES", "ROUNDS OF")]
    for name, part in PARTS.items():
        rows.append((name, part.few or "none", "all" if part.batch >= 1_000_000 else part.batch, part.minutes, part.of))
    print(*table(rows), sep="\n")
    print("\nmake soak runs all, make soak FOR=1h in an hour, make soak PART=crash FOR=2h one; it goes on where the last run stopped.")


def list_results():
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for result in results():
        entry = sums[result["commit"], result["part"]]
        entry[0] += result["rounds"] if result["passed"] else 0
        entry[1] += not result["passed"]
        entry[2] += result["seconds"]
    rows = [("COMMIT", "PART", "ROUNDS PASSED", "BATCHES FAILED", "MINUTES")]
    rows += [(*key, passed, failed, round(seconds / 60, 1)) for key, (passed, failed, seconds) in sums.items()]
    print(*table(rows), sep="\n")


def main(arguments):
    everything = {name: 60 * part.minutes for name, part in PARTS.items()}
    match arguments:
        case ["list"]:
            list_parts()
            if results():
                print()
                list_results()
            return
        case []:
            seconds = everything
        case [name] if name in PARTS:
            seconds = {name: everything[name]}
        case [name, time_of_part] if name in PARTS:
            seconds = {name: seconds_in(time_of_part)}
        case [time_of_all] if time_of_all[:1].isdigit():
            share = seconds_in(time_of_all) / sum(everything.values())
            seconds = {name: share * usual for name, usual in everything.items()}
        case _:
            sys.exit(f"usage: soak.py [list | PART] [TIME]; the parts are {', '.join(PARTS)}")
    sys.exit(0 if run(seconds) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
