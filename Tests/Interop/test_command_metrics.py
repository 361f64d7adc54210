"""The metrics of the store, read as Prometheus reads them."""

import re
import urllib.request

from provider import Provider, away_device
from service import PATIENCE, eventually

STORED = "herald_notifications_stored_total"
UNWRITTEN = "herald_notifications_replaced_unwritten_total"


def counters(service):
    url = f"http://127.0.0.1:{service.listeners['console']}/metrics"
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return {name: float(value) for name, value in re.findall(r"^(\w+) ([\d.]+)$", answer.read().decode(), re.M)}


def test_notifications_replaced_within_one_commit_are_counted(parties):
    """A burst for one app of a device that is away: all are on record as stored, and few are written as rows."""
    device = away_device(parties.service)
    before = counters(parties.service)

    def counted(name):
        return counters(parties.service).get(name, 0) - before.get(name, 0)

    with parties.provider() as provider:
        # In one piece: what comes one by one, from a slow client, may be written one by one.
        flush, provider.flush = provider.flush, lambda: None
        streams = [provider.send(device.token) for _ in range(300)]
        provider.flush = flush
        provider.flush()
        assert {provider.answer(stream).status for stream in streams} == {200}
    eventually(lambda: counted(STORED) == 300, what="300 stored notifications")
    assert 0 < counted(UNWRITTEN) < 300


def test_a_single_notification_is_written(parties):
    device = away_device(parties.service)
    before = counters(parties.service)
    with Provider(parties.service, certificate=parties.certificate) as provider:
        for _ in range(3):
            assert provider.push(device.token).status == 200
    eventually(lambda: counters(parties.service)[STORED] - before.get(STORED, 0) == 3, what="three stored notifications")
    assert counters(parties.service).get(UNWRITTEN, 0) == before.get(UNWRITTEN, 0)
