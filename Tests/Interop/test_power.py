"""Takes the power from a machine with Herald under load and shows by a ledger of all 200s that none was forgotten.

Only `make soak` runs this; `make test` runs test_volatile_disk.py, which shows that the disk loses what it should.
"""

import concurrent.futures
import itertools
import shutil
import threading
import time

import pytest

from guest import DISK_MIB, Guest, NoGuest, make_disk, make_system, require
from provider import away_device
from service import PATIENCE, TOPIC
from test_crash_ledger import SECOND_TOPIC, Ledger, Listener, Load, drain
from volatile_disk import VolatileDisk

TOPICS = (TOPIC, SECOND_TOPIC)
#: Kills without syncs. One of them must lose something.
CONTROLS = 4
#: Seconds of a flush, as on a slow disk: a cut then often comes between a write and the end of its flush.
FLUSH = 0.02
#: One boot of this many is itself cut off.
UNFINISHED_BOOTS = 6


class Outfit:
    """The service's data, its devices and their providers. They are made on this machine, before guests get a copy."""

    def __init__(self, service, folder):
        self.folder, self.ca = folder, folder / "ca.pem"
        service.start()
        self.connected = away_device(service, *TOPICS)
        self.away = [away_device(service, *TOPICS) for _ in range(5)]
        self.credentials = [{"certificate": service.provider_certificate(*TOPICS)}, {"key": service.provider_key()}]
        service.stop()
        shutil.copy(service.ca, self.ca)
        (folder / "disk").mkdir()
        shutil.copytree(service.data, folder / "disk" / "herald", ignore=shutil.ignore_patterns("run"))
        make_disk(folder / "data.img", folder / "disk", DISK_MIB)
        make_system(folder)

    def guest(self, syncs=True):
        """A machine on a disk of its own, and the disk."""
        image = self.folder / ("synced.img" if syncs else "unsynced.img")
        shutil.copy(self.folder / "data.img", image)
        disk = VolatileDisk(image, flush_seconds=FLUSH)
        return Guest(self.folder, disk, self.ca, syncs), disk


class Story:
    """A machine that loses power again and again, and the ledger of what it answered."""

    def __init__(self, outfit, syncs=True):
        self.outfit = outfit
        self.guest, self.disk = outfit.guest(syncs)
        self.ledger, self.lock = Ledger(), threading.Lock()
        self.slots = [
            ((device.id, topic), device.tokens[topic]) for device in (outfit.connected, *outfit.away) for topic in TOPICS
        ]
        #: Sectors that were in the cache when the power went, and those of them that reached the medium.
        self.unflushed = self.kept = 0

    def cycle(self, chance):
        """Load, a cut, and what is missing afterwards."""
        if not self.guest.process:
            self.guest.start()
        listener = Listener(self.guest, self.outfit.connected, TOPICS, self.ledger, self.lock)
        enough, count, deaths = threading.Event(), itertools.count(1), chance.randrange(1, 400)
        loads = [
            Load(
                self.guest, credential, self.slots, self.ledger, self.lock, chance,
                lambda: next(count) >= deaths and enough.set(),
            )
            for credential in self.outfit.credentials
        ]
        for load in loads:
            load.start()
        assert enough.wait(timeout=2 * PATIENCE), "the load does not advance"
        time.sleep(chance.random() / 2)  # pace: the moment of the cut
        self.guest.kill()
        for load in loads:
            load.join(timeout=PATIENCE)
            assert load.error is None, f"{load.error!r}"
        listener.close()
        self.cut(chance)
        if chance.randrange(UNFINISHED_BOOTS) == 0:
            self.guest.switch_on()
            time.sleep(chance.random() * 20)  # pace: the moment of the cut
            self.guest.kill()
            self.cut(chance)
        self.guest.start()
        return self.missing()

    def cut(self, chance):
        unflushed, kept = self.disk.cut(chance)
        self.unflushed += unflushed
        self.kept += kept

    def missing(self):
        """Connects all devices; returns the notifications that were answered with 200 and did not come."""
        devices = [self.outfit.connected, *self.outfit.away]

        def connect(device):
            return drain(self.guest, device, TOPICS, self.ledger, self.lock, self.outfit.credentials[1])

        # The machine is slow, and a handshake has ten seconds.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            _, *returned = pool.map(connect, devices)
        returned = [id for ids in returned for id in ids]
        assert not self.ledger.superseded(returned), "a device got what had been replaced"
        return self.ledger.lost(now=time.time())

    def rest(self):
        if self.guest.process:
            self.guest.kill()

    def close(self):
        self.guest.close()
        self.disk.close()


@pytest.fixture
def stories(fresh, tmp_path):
    require()
    outfit = Outfit(fresh(), tmp_path)
    begun = []

    def begin(**options):
        begun.append(Story(outfit, **options))
        return begun[-1]

    yield begin
    for story in begun:
        story.close()


@pytest.mark.slow
def test_a_power_cut_forgets_no_answered_notification(stories, rounds):
    control = stories(syncs=False)
    for number in range(CONTROLS):
        control_lost = lost_by(control, rounds.random("control", number))
        if control_lost:
            break
    assert control_lost, f"{CONTROLS} cuts without syncs lost nothing: this test would find nothing"
    control.rest()

    story = stories()
    lost = 0
    for number in rounds:
        missing = story.cycle(rounds.random(number))
        accepted, lost = len(story.ledger.accepted), len(missing)
        print(f"cut {number}: {accepted} accepted so far, {lost} of them lost, {story.unflushed} sectors unflushed", flush=True)
        assert not missing, f"cut {number}: {lost} of {accepted} accepted notifications are lost: {missing[:5]}"
    rounds.report(accepted=accepted, lost=lost, unflushed_sectors=story.unflushed, reached_the_disk=story.kept)
    rounds.report(control_lost=control_lost)


def lost_by(story, chance):
    """The number of notifications that a cut lost. A store that does not open is a loss, too."""
    try:
        return len(story.cycle(chance))
    except NoGuest as error:
        print(error)
        return len(story.ledger.accepted)
