"""The console's memory of the present: events, series, refusals and problems of a running service."""

import contextlib
import json
import urllib.request

import pytest

from provider import Provider, listening_device
from service import PATIENCE, TOPIC, eventually, herald


def request(service, path, **fields):
    token = (service.data / "run" / "admin.token").read_text().strip()
    headers = {"authorization": f"Bearer {token}", **fields}
    url = f"http://127.0.0.1:{service.listeners['console']}{path}"
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE)


def get(service, path):
    with request(service, path) as answer:
        return json.loads(answer.read())


def events(stream):
    """The events of a stream: kind, data and id."""
    kind, data, id = None, None, None
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            data = json.loads(value)
        elif name == "id":
            id = value
        elif not name and kind:
            yield kind, data, id
            kind, data, id = None, None, None


def lines(stream):
    """The next lines of the journal that a stream has, up to a delivery, and the id of their last event."""
    found = []
    for kind, data, id in events(stream):
        if kind == "lines":
            found += data["items"]
        # A device that takes a moment to acknowledge has a line between the two.
        states = {line["state"] for line in found}
        if "received" in states and states & {"delivered", "delivered from storage"}:
            return found, id
    raise AssertionError(f"the stream ended after {len(found)} lines")


def test_a_page_sees_lines_as_they_are_written_and_goes_on_where_it_was(fresh):
    service = fresh().start()
    with listening_device(service) as device, Provider(service, certificate=service.provider_certificate(TOPIC)) as provider:
        with contextlib.closing(request(service, "/v1/events?want=lines")) as stream:
            assert stream.headers["content-type"] == "text/event-stream"
            first = provider.push(device.token).id
            seen, id = lines(stream)
            assert {line["id"].lower() for line in seen} == {first.lower()}
        second = provider.push(device.token).id
        with contextlib.closing(request(service, "/v1/events?want=lines", **{"last-event-id": id})) as stream:
            seen, _ = lines(stream)
            assert {line["id"].lower() for line in seen} == {second.lower()}


def test_counts_and_problems_are_told_at_once(fresh):
    service = fresh("--clock", "adjustable").start()
    with contextlib.closing(request(service, "/v1/events?want=counts,problems")) as stream:
        stream = events(stream)
        kinds = {next(stream)[0], next(stream)[0]}
        assert kinds == {"counts", "problems"}
        herald("drill", "start", "refuse", "--reason", "TooManyRequests", "--for", "10m", "--data", service.data)
        problems = next(data for kind, data, _ in stream if kind == "problems" and data)
        assert problems[0]["kind"] == "drill" and problems[0]["link"] == "docs/drills.md"
        herald("drill", "stop", "--all", "--data", service.data)
        next(data for kind, data, _ in stream if kind == "problems" and not data)
    (over,) = get(service, "/v1/problems?history=1")["items"]
    assert over["kind"] == "drill" and over["until"] >= over["since"]


def test_series_and_refusals_follow_the_traffic(fresh):
    service = fresh().start()
    with listening_device(service) as device, Provider(service, certificate=service.provider_certificate(TOPIC)) as provider:
        # Rates begin with the first look at the counters.
        eventually(lambda: "end" in get(service, "/v1/series?names=delivered"), what="the first look")
        assert provider.push(device.token).status == 200
        ids = [provider.push("ab" * 32).id for _ in range(7)]

        def delivered():
            names = "delivered,delivered_from_storage,requests_refused,delivery_seconds_p99"
            series = get(service, f"/v1/series?names={names}")["series"]
            moved = {name for name, values in series.items() if any(values)}
            # From storage, if the device took a moment to acknowledge.
            return {"requests_refused", "delivery_seconds_p99"} <= moved and len(moved) > 2 and series

        series = eventually(delivered, what="the series of the delivery and the refusals")
        assert all(len(values) == 900 for values in series.values())
        group = eventually(
            lambda: next((one for one in get(service, "/v1/refusals")["items"] if one["count"] == 7), None),
            what="the group of the refusals",
        )
    assert (group["reason"], group["topic"], group["status"]) == ("BadDeviceToken", TOPIC, 400)
    assert [sample["id"].lower() for sample in group["samples"]] == [id.lower() for id in reversed(ids[-5:])]
    assert group["share"] == pytest.approx(7 / 8)
    assert sum(group["per_minute"]) == 7 and group["provider"]
    assert "abababab" not in json.dumps(group)
