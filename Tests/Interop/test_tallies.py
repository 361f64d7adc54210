"""Exact numbers of what became of an app's notifications, by the hour."""

import json
import subprocess

from provider import Provider, away_device, listening_device
from service import PATIENCE, TOPIC, eventually


def tallies(service, query):
    """The sums of `GET /v1/tallies`, as a tool gets them."""
    token = (service.data / "run" / "admin.token").read_text().strip()
    address = f"http://127.0.0.1:{service.listeners['console']}/v1/tallies?{query}"
    result = subprocess.run(
        ["curl", "--silent", "--show-error", "--fail", "--header", f"authorization: Bearer {token}", address],
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )
    found = json.loads(result.stdout)
    for name, count in found["sums"].items():
        assert count == sum(hour["counts"].get(name, 0) for hour in found["hours"])
    assert found["missing_nodes"] == []
    return found["sums"]


def test_a_campaign_is_counted_by_what_became_of_it_also_after_a_crash(fresh):
    service = fresh().start()
    away, certificate = away_device(service), service.provider_certificate(TOPIC)

    def delivered():
        counts = tallies(service, "by=outcome")
        return counts.get("delivered", 0) + counts.get("delivered_from_storage", 0)

    with Provider(service, certificate) as provider:
        for _ in range(3):
            provider.push(away.token)
        provider.push(away.token, push_type="background", priority=5)
        assert provider.push(away.token, priority=7).status == 400
        with listening_device(service) as online:
            for count in (1, 2):
                provider.push(online.token)
                online.next()
                eventually(lambda wanted=count: delivered() == wanted, what="the delivery")
    states = {"received": 6, "refused": 1, "delivered": 2, "stored (device offline)": 4, "replaced": 3}
    counts = tallies(service, f"by=state&app={TOPIC}")
    # Stored, if the device took a moment to acknowledge it or the one before.
    if late := counts.pop("delivered from storage", 0):
        reasons = ("sent, not acknowledged yet", "behind others that the device has not acknowledged")
        assert sum(counts.pop(f"stored ({reason})", 0) for reason in reasons) == late
        counts["delivered"] = counts.get("delivered", 0) + late
    assert counts == states
    assert tallies(service, "by=state&app=com.example.other") == {}
    assert tallies(service, f"by=type&app={TOPIC}&environment=production") == {"alert": 5, "background": 1}
    assert tallies(service, "by=priority&outcome=replaced") == {"10": 3}
    # Counts that are on disk are not added again, and others are not lost.
    with Provider(service, certificate) as provider:
        provider.push(away.token)
    eventually(lambda: len(service.journal("--topic", TOPIC)) == sum(states.values()) + 3, what="the last lines")
    service.kill()
    service.start()
    states |= {"received": 7, "stored (device offline)": 5, "replaced": 4}
    assert tallies(service, f"by=state&app={TOPIC}") == states
