"""A relay during drills of the service: nothing is lost or sent twice, and every row becomes `sent` once."""

import collections
import json
import re
import time
import urllib.request

import pytest

from provider import away_device, listening_device
from relay import Relay, SQLiteQueue, check, fill, sending
from service import PATIENCE, TOPIC, eventually, herald

#: The journal's states of a request that a drill refused or lost.
NOT_TAKEN = ("refused (drill)", "lost (drill)")


def words(line):
    return line["state"] + (f" ({line['reason']})" if line.get("reason") else "")


class Scene:
    """A service, a device that is away, and the drills of the service."""

    def __init__(self, service):
        self.service = service
        self.certificate = service.provider_certificate()
        self.device = away_device(service)
        self.token = self.device.token

    def get(self, path):
        token = (self.service.data / "run" / "admin.token").read_text().strip()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.service.listeners['console']}{path}", headers={"authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def start(self, *words):
        herald("drill", "start", *words, "--data", self.service.data)

    def stop(self):
        herald("drill", "stop", "--all", "--data", self.service.data)

    def hits(self, kind):
        """The number of requests that drills of a kind have hit."""
        found = re.search(rf'herald_drilled_requests_total{{kind="{kind}"}} (\d+)', self.get("/metrics"))
        return int(found[1]) if found else 0

    def states(self, ids):
        """The journal's lines of the device's newest notifications, in their order."""
        lines = collections.defaultdict(list)
        for line in json.loads(self.get(f"/v1/journal?device={self.device.id}&limit=10000")):
            lines[line["id"].lower()].append(words(line))
        return {id: lines[id.lower()] for id in ids}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    from service import Service

    service = Service(tmp_path_factory.mktemp("drills") / "data").start()
    yield Scene(service)
    service.close()


@pytest.fixture
def day(scene, tmp_path, record_property):
    """A relay and its queue; a test drains rows through it during a drill."""
    queue = SQLiteQueue(tmp_path / "queue.db")
    relay = Relay(queue.url, "--topic", TOPIC, *sending(scene.service, "--log-level", "notice"))

    def drain(count, *drills, until=None):
        """Drains so many rows. If `until` is given, the drills end when they have hit so many: no rows could be sent before."""
        kinds = {drill[0] for drill in drills}
        before = {kind: scene.hits(kind) for kind in kinds}
        relay.start()
        for drill in drills:
            scene.start(*drill)
        start = time.monotonic()
        fill(queue, scene.token, count)
        if until:
            eventually(lambda: sum(scene.hits(kind) - before[kind] for kind in kinds) >= until, what=f"{until} hits")
            scene.stop()
        queue.drained(timeout=3 * PATIENCE)
        seconds = time.monotonic() - start
        hits = {kind: scene.hits(kind) - before[kind] for kind in kinds}
        retries, resolved = relay.metric("herald_relay_retries_total"), relay.metric("herald_relay_resolved_total")
        assert relay.stop() == 0
        check(queue, count)
        rows = queue.run("SELECT apns_id FROM push_queue")
        states = scene.states({row["apns_id"] for row in rows})
        assert len(states) == count
        for id, lines in states.items():
            taken = lines.count("received") - sum(lines.count(state) for state in NOT_TAKEN)
            assert taken == 1, f"{id} was taken {taken} times: {lines}"
        figures = {"rows": count, "hits": hits, "retries": retries, "resolved": resolved, "seconds": round(seconds, 1)}
        print(figures)
        record_property("figures", json.dumps(figures))
        return collections.namedtuple("Day", "hits states seconds resolved")(hits, states, seconds, resolved)

    yield drain
    relay.close()
    scene.stop()


@pytest.fixture
def arrivals(scene, tmp_path, record_property):
    """A relay whose rows go to a connected device: each comes there once, too."""
    queue = SQLiteQueue(tmp_path / "arrivals.db")
    # No more at a time than a device takes at once: of what waits for it, the newest of an app would replace the others.
    options = sending(scene.service, "--log-level", "notice", "--relay-window", 8)
    relay = Relay(queue.url, "--topic", TOPIC, *options)
    device = listening_device(scene.service)

    def drain(count, *drill, until=None):
        before = scene.hits(drill[0])
        relay.start()
        scene.start(*drill)
        fill(queue, device.token, count)
        if until:
            eventually(lambda: scene.hits(drill[0]) - before >= until, what=f"{until} hits")
            scene.stop()
        queue.drained(timeout=3 * PATIENCE)
        assert relay.stop() == 0
        scene.stop()
        check(queue, count)
        ids = {row["apns_id"].lower() for row in queue.run("SELECT apns_id FROM push_queue")}
        eventually(lambda: len(device.messages) >= count, timeout=PATIENCE, what=f"{count} notifications on the device")
        # Nothing more is on its way: what is sent now comes last.
        last = queue.insert(device_token=device.token)
        relay.start()
        last = queue.done(last)["apns_id"].lower()
        eventually(lambda: device.messages[-1].id == last, what="the last notification")
        ledger = collections.Counter(message.id for message in device.messages)
        assert set(ledger) == ids | {last} and set(ledger.values()) == {1}
        return scene.hits(drill[0]) - before

    yield drain
    relay.close()
    device.stop()
    scene.stop()


def test_each_row_reaches_the_device_once_after_goaway(arrivals):
    assert arrivals(400, "goaway", "--share", "2%", "--seed", 11) >= 3


@pytest.mark.slow
def test_each_row_reaches_the_device_once_after_refusals(arrivals):
    assert arrivals(150, "refuse", "--reason", "ServiceUnavailable", "--share", "30%", "--seed", 12, until=3) >= 3


def test_each_row_reaches_the_device_once_after_dropped_connections(arrivals):
    assert arrivals(400, "drop", "--share", "1%", "--seed", 13, until=2) >= 2


def test_goaway_in_mid_batch(day):
    assert day(1000, ["goaway", "--share", "1%", "--seed", 1]).hits["goaway"] >= 3


@pytest.mark.slow
def test_shutdown_in_mid_batch(day):
    assert day(1000, ["shutdown", "--share", "1%", "--seed", 2], until=1).hits["shutdown"] >= 1


def test_dropped_connections(day):
    assert day(1000, ["drop", "--share", "1%", "--seed", 3], until=3).hits["drop"] >= 3


@pytest.mark.slow
def test_silence_of_both_kinds(day):
    past = day(
        400, ["silence", "--share", "3%", "--seed", 4, "--for", "45s"],
        ["silence", "--accepted", "--share", "3%", "--seed", 5, "--for", "45s"],
    )
    assert [lines for lines in past.states.values() if "lost (drill)" in lines]
    withheld = [lines for lines in past.states.values() if "answer withheld (drill)" in lines]
    # Each of those was asked for and found; none was sent again.
    assert withheld and past.resolved == len(withheld)


def test_one_stream_at_a_time(day):
    day(300, ["streams", "--streams", "1"])


def test_429_with_the_default_pause(day):
    past = day(400, ["refuse", "--reason", "TooManyRequests", "--share", "30%", "--seed", 6])
    assert past.hits["refuse"] >= 60

def test_429_with_retry_after(day):
    past = day(400, ["refuse", "--reason", "TooManyRequests", "--retry-after", "4s", "--share", "30%", "--seed", 7], until=60)
    assert past.hits["refuse"] >= 60 and past.seconds >= 4


def test_503(day):
    past = day(400, ["refuse", "--reason", "ServiceUnavailable", "--share", "30%", "--seed", 8], until=60)
    assert past.hits["refuse"] >= 60 and past.seconds >= 10
