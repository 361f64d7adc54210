"""A made-up service's answers, with something of everything that a page of the console shows."""

import datetime
import math

NOW = datetime.datetime.now(datetime.timezone.utc)
ID = "2f7ca8f4-1c1b-4f0e-9f5e-0c6ab6f0{:04x}"


def at(seconds):
    """A time, in seconds from now."""
    return (NOW + datetime.timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(number, state, seconds, **changes):
    """A line of the journal."""
    devices = ["kitchen", "hall", "9f1c2d", "attic"]
    state, _, reason = state.partition("/")
    return {
        "time": at(seconds), "id": ID.format(number), "unique_id": ID.format(number + 0x8000), "device": devices[number % 4],
        "topic": ["com.example.chat", "com.example.mail", "com.example.weather.station"][number % 3], "environment": "production" if number % 5 else "sandbox",
        "state": state, **({"reason": reason} if reason else {}), "provider": "key K7F2ABCDEF of team ABCDE12345", "type": "alert", "priority": 10,
        "size": 214, **changes,
    }


STATES = [
    "delivered", "stored/device offline", "replaced", "delivered from storage", "delivered", "discarded/unregistered", "delivered",
    "stored/power", "delivered", "refused/TopicDisallowed", "delivered", "delivered, unacknowledged",
]


def lines():
    """Lines of sixty notifications, newest first."""
    found = []
    for number in range(60):
        state = STATES[number % len(STATES)]
        more = {"replacement": ID.format(number - 1)} if state == "replaced" else {}
        if state.startswith("refused"):
            more = {"status": 400, "explanation": "The certificate does not permit this topic."}
        found.append(line(number, state, -number * 13, **more))
        if not state.startswith("refused"):
            found.append(line(number, "received", -number * 13 - 0.031))
    return found


def search(path, query, body):
    words = body["q"].split()
    found = [one for one in lines() if all(matches(one, word) for word in words)]
    return {"items": found[: body.get("limit", 100)], "cursor": None if words else "b64", "complete": bool(words), "searched_back_to": at(-7200), "took_ms": 14, "missing_nodes": []}


def matches(one, word):
    name, _, value = word.partition(":")
    return not value or str(one.get(name, "")).startswith(value)


def life(path, query, body):
    wanted = path.rpartition("/")[2]
    found = [one for one in reversed(lines()) if wanted in (one["id"], one["unique_id"])]
    if not found:
        return 404, {"error": "the journal has no notification with this identifier"}
    words = [{"time": one["time"], "words": WORDS.get(one["state"], [one["state"], ""])[0], "hint": WORDS.get(one["state"], ["", ""])[1]} for one in found]
    return {"id": wanted, "lines": found, "final": True, "state": found[-1]["state"], "words": words, "missing_nodes": []}


WORDS = {
    "received": ["Herald accepted it.", "The provider got 200."],
    "delivered": ["The device has it.", "Herald's part is done: the app decides what is shown."],
    "stored": ["Herald keeps it for the device.", "It goes out when the device connects. One notification is kept for each app."],
    "replaced": ["A newer notification of the same app took its place.", "A device that is away keeps the newest of each app. Use different topics, or put all of it in one payload."],
    "discarded": ["The app is not on the device any more.", "Delete the token: the next request gets 410 Unregistered."],
}


def wave(length, top, phase=0.0):
    return [None if index < length // 12 else round(top * (1.3 + math.sin(index / 31 + phase)) / 2.3, 2) for index in range(length)]


def series(path, query, body):
    length = {"15m": 900, "24h": 1440, "30d": 2880}[query["range"]]
    tops = {"delivered": 300, "delivered_from_storage": 40, "stored": 60, "replaced": 25, "discarded": 9, "refused_by_device": 2, "requests": 412, "devices_connected": 18204, "notifications_waiting": 9310, "requests_refused": 3.1, "delivery_seconds_p99": 0.038}
    names = [name for name in query["names"].split(",") if name in tops]
    return {
        "step_seconds": {"15m": 1, "24h": 60, "30d": 900}[query["range"]], "end": at(0),
        "series": {name: wave(length, tops[name], index) for index, name in enumerate(names)},
    }


PROBLEMS = [
    {"since": at(-5400), "until": None, "what": "14 requests of key K7F2ABCDEF were refused: TopicDisallowed", "why": "The key's team does not own com.example.weather.", "action": "Check the provider's apns-topic.", "link": "/refusals"},
    {"since": at(-86400 * 3), "until": None, "what": "The server certificate ends in 21 days", "why": "Devices and providers refuse an expired certificate.", "action": "Run `herald init --renew`.", "link": None},
]


def answers():
    return {
        "GET /v1/session": {"name": "Ada", "role": "admin", "mode": "full", "environments": ["production", "sandbox"]},
        "POST /v1/session": {"name": "Ada", "role": "admin", "mode": "full", "environments": ["production", "sandbox"]},
        "DELETE /v1/session": None,
        "GET /v1/status": {"version": "0.9.0", "pid": 4711, "started": at(-273600), "devices_connected": 18204, "notifications_waiting": 9310},
        "GET /v1/clock": {"now": at(0), "milliseconds": int(NOW.timestamp() * 1000), "adjustable": False},
        "GET /v1/series": series,
        "GET /v1/problems": lambda path, query, body: {"items": PROBLEMS + ([{**PROBLEMS[0], "what": "The disk was nearly full", "since": at(-90000), "until": at(-88000)}] if query else [])},
        "POST /v1/journal/search": search,
        "GET /v1/journal/*": life,
    }
