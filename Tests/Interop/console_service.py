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
    """Lines of notifications, newest first."""
    found = []
    for number in range(24):
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
    {"since": at(-5400), "until": None, "what": "14 requests of key K7F2ABCDEF were refused: TopicDisallowed", "why": "The key's team does not own com.example.weather.", "action": "Check the provider's apns-topic.", "link": "docs/providers.md#refusals", "kind": "refusals", "severity": "warning"},
    {"since": at(-86400 * 3), "until": None, "what": "The server certificate ends in 21 days", "why": "Devices and providers refuse an expired certificate.", "action": "Renew it in time.", "link": "docs/operations/alerts.md#heraldcertificateexpires", "kind": "certificate", "severity": "warning"},
]


APPS = [
    {"topic": "com.example.chat", "environment": "production", "registered": at(-86400 * 9), "enabled": True, "waiting": {"id": ID.format(7), "unique_id": ID.format(0x8007), "received": at(-240), "expires": at(86400)}},
    {"topic": "com.example.mail", "environment": "sandbox", "registered": at(-86400), "enabled": False},
]

DEVICES = [
    {
        "id": name, "name": name.title(), "serial": "0a1b2c", "created": at(-86400 * 40), "expires": at(86400 * 300), "revoked": None, "connected": number % 3 != 1,
        "last_seen": at(-3600 * number), "last_address": "192.0.2.7", "apps": APPS[: number + 1], "waiting": number * 3, "labels": {"site": "Berlin", "ring": "beta"} if number % 2 else {},
    }
    for number, name in enumerate(["kitchen", "hall", "9f1c2d", "attic", "cellar", "garden"])
]

INVITATION = {"id": "i1", "name": "Depot", "state": "open", "created": at(-60), "expires": at(86400), "withdrawn": None, "uses": 40, "used": 3, "last_used": at(-9), "device": None}


def device(path, query, body):
    found = [one for one in DEVICES if one["id"] == path.split("/")[3]]
    return {**found[0]} if found else (404, {"error": "no device has this identifier"})


def devices(path, query, body):
    found = [one for one in DEVICES if query.get("q", "").lower() in one["id"] and query.get("connected") in (None, str(one["connected"]).lower())]
    if query.get("after"):
        return {"items": [{**DEVICES[0], "id": "second-page", "name": "Second page"}], "next": None}
    return {"items": found, "next": "b64" if "q" not in query else None}


REFUSALS = [
    {
        "provider": "key K7F2ABCDEF of team ABCDE12345", "topic": "com.example.weather", "environment": "production", "reason": "TopicDisallowed", "status": 400, "count": 2114, "first": at(-86400),
        "last": at(-12), "share": 0.124, "per_minute": [number % 7 for number in range(60)],
        "samples": [{"time": at(-12 - number), "id": ID.format(9), "explanation": "The key's team does not own the topic com.example.weather: it belongs to team XYZDE12345."} for number in range(5)],
    },
    {
        "provider": "certificate 0A1B2C", "topic": "com.example.mail", "environment": "sandbox", "reason": "Unregistered", "status": 410, "count": 31, "first": at(-7200), "last": at(-600), "share": 0.02,
        "per_minute": [0] * 40 + [3] * 20, "samples": [{"time": at(-600), "id": ID.format(77), "explanation": "The app was removed from the device."}],
    },
    {"provider": None, "topic": None, "environment": "production", "reason": "MissingProviderToken", "status": 403, "count": 3, "first": at(-900), "last": at(-800), "share": None, "per_minute": [0] * 60, "samples": []},
]


def tallies(path, query, body):
    wanted = {
        "outcome": {"received": 1200, "delivered": 1000, "delivered_from_storage": 90, "replaced": 60, "discarded": 40, "refused": 14},
        "state": {"received": 1200, "delivered": 1000, "replaced": 60, "discarded from storage (expired)": 40},
        "type": {"alert": 1100, "background": 100}, "priority": {"10": 1100, "5": 100},
    }[query.get("by", "outcome")]
    hours = [{"time": at(-3600 * hour), "counts": {name: max(1, count // 24) for name, count in wanted.items()}} for hour in (20, 3, 2)]
    return {"from": at(-86400), "to": at(0), "sums": wanted, "hours": hours, "missing_nodes": []}


CREDENTIALS = [
    {"id": "key K7F2ABCDEF of team ABCDE12345", "kind": "key", "team": "ABCDE12345", "topics": [], "environments": ["production", "sandbox"], "created": at(-86400 * 90), "last_used": at(-3), "requests": 41200, "refused": 14},
    {"id": "certificate 0A1B2C", "kind": "certificate", "serial": "0a1b2c", "team": "ABCDE12345", "topics": ["com.example.mail", "com.example.chat", "com.example.x"], "environments": ["production"], "created": at(-86400 * 350), "expires": at(86400 * 12), "requests": 12, "refused": 0},
    {"id": "certificate 0D", "kind": "certificate", "serial": "0d", "team": "XYZDE12345", "topics": ["com.example.old"], "environments": ["sandbox"], "created": at(-86400 * 700), "expires": at(-86400), "revoked": at(-86400 * 30)},
]

CHANNELS = [
    {"id": "dHN0LXNyY2gtY2hubA==", "topic": "com.example.sports", "environment": "production", "policy": 1, "created": at(-86400), "subscribers": 1204, "published": 88, "delivered": 90211, "stored": True},
    {"id": "c2Vjb25kLWNoYW5uZWw=", "topic": "com.example.sports", "environment": "sandbox", "policy": 0, "created": at(-3600), "subscribers": 2, "published": 1, "delivered": 2, "stored": False},
]

DRILL = {"id": 3, "kind": "refuse", "what": "refuse 20% of the requests with 429 TooManyRequests", "from": "operator", "started": at(-24), "ends": at(96), "seconds_left": 96.0, "hits": 311, "seed": 7}

PAYLOADS = [
    '{"aps":{"alert":{"title":"Bob","body":"Are you coming tonight?"},"badge":3,"sound":"chime.aiff"},"room":17}', '{"aps":{"allert":"x"}}', "not JSON at all",
]


def caught(number):
    refused = number % 3 == 2
    return {
        "id": ID.format(number), "unique_id": ID.format(number + 0x8000), "time": at(-number * 7), "environment": "sandbox", "interface": "http2", "topic": "com.example.chat", "device": "kitchen",
        "provider": "key K7F2ABCDEF of team ABCDE12345", "status": 400 if refused else 200, "reason": "BadPriority" if refused else None, "explanation": "apns-priority must be 1, 5 or 10." if refused else None,
        "headers": {"apns-topic": "com.example.chat", "apns-push-type": "alert", "apns-priority": "10"}, "payload": PAYLOADS[number % 3], "tag": "login-test", "findings": number % 3,
    }


CATCHING = {"topics": ["com.example.chat"], "until": at(3000), "messages": 9, "limit": 500}

CHECK = {
    "push_type": "alert", "accepted": True, "size": 71, "compact_size": 71, "limit": 4096, "http2": {"status": 200, "reason": None}, "binary": {"limit": 2048, "status": 0},
    "findings": [{"severity": "warning", "place": "aps.allert", "message": "The device ignores this key: did you mean alert?"}, {"severity": "note", "place": "aps.badge", "message": "A badge of 3 replaces the one before."}],
}

PREVIEW = {
    "accepted": True, "languages": ["en"],
    "presentations": [
        *({"state": state, "language": "en", "shown": True, "title": "Bob", "body": "Are you coming tonight?", "badge": 3, "sound": "chime.aiff", "place": "banner", "buttons": ["Close", "View"], "delivered_to_app": False} for state in ("background", "not running")),
        {"state": "locked", "language": "en", "shown": True, "title": "Bob", "body": "Are you coming tonight?", "badge": 3, "sound": "chime.aiff", "place": "lock screen", "buttons": [], "delivered_to_app": False},
        {"state": "foreground", "language": "en", "shown": False, "badge": "unchanged", "sound": None, "buttons": [], "delivered_to_app": True},
    ],
}

TOKENS = [{"id": "t1", "name": "grafana", "role": "viewer", "created": at(-86400), "expires": at(86400 * 89)}]
SESSIONS = [{"id": "s1", "name": "Ada", "role": "admin", "address": "127.0.0.1", "opened": at(-3600), "used": at(-2), "ends": at(86400 * 6)}]
AUDIT = [{"id": 100 - number, "time": at(-number * 400), "who": "Ada", "role": "admin", "from": "127.0.0.1", "proof": "session", "action": "POST /v1/drills", "target": "refuse", "status": 200} for number in range(7)]


def answers():
    return {
        "GET /v1/session": {"name": "Ada", "role": "admin", "mode": "full", "drills": "admin", "environments": ["production", "sandbox"]},
        "POST /v1/session": {"name": "Ada", "role": "admin", "mode": "full", "drills": "admin", "environments": ["production", "sandbox"]},
        "DELETE /v1/session": None,
        "GET /v1/status": {"version": "0.9.0", "pid": 4711, "started": at(-273600), "now": at(0), "environments": ["production", "sandbox"], "mode": "full", "devices_connected": 18204, "notifications_waiting": 9310, "drills": [], "disk_free_bytes": 10**10, "journal": {"first": at(-86400 * 20), "last": at(-1)}},
        "GET /v1/clock": {"now": at(0), "milliseconds": int(NOW.timestamp() * 1000), "adjustable": True},
        "GET /v1/series": series,
        "GET /v1/problems": lambda path, query, body: {"items": PROBLEMS + ([{**PROBLEMS[0], "what": "The disk was nearly full", "since": at(-90000), "until": at(-88000)}] if query else [])},
        "POST /v1/journal/search": search,
        "GET /v1/journal/*": life,
        "GET /v1/devices": devices,
        "GET /v1/devices/*": device,
        "POST /v1/devices/*": {},
        "GET /v1/tallies": tallies,
        "GET /v1/refusals": {"items": REFUSALS},
        "GET /v1/credentials": {"items": CREDENTIALS, "next": None},
        "GET /v1/credentials/*": lambda path, query, body: next(({**one} for one in CREDENTIALS if one["id"] == path.rpartition("/")[2]), (404, {"error": "no credential has this identifier"})),
        "POST /v1/credentials/*": {"credential": {**CREDENTIALS[1], "id": "certificate 0E"}, "certificate": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"},
        "GET /v1/channels": {"items": CHANNELS, "next": None},
        "POST /v1/channels": {**CHANNELS[1], "id": "bmV3LW1hZGUtY2hhbm4=", "topic": "com.example.new", "subscribers": 0, "published": 0, "delivered": 0},
        "DELETE /v1/channels/*": CHANNELS[1],
        "GET /v1/apps": {"items": [{"topic": "com.example.sports", "environment": "sandbox", "devices": 2, "channels": 1, "unused": False}], "next": None},
        "GET /v1/drills": [DRILL],
        "POST /v1/drills": DRILL,
        "POST /v1/drills/*": DRILL,
        "POST /v1/clock/advance": {"now": at(0), "milliseconds": int(NOW.timestamp() * 1000), "adjustable": True},
        "GET /v1/caught": {"items": [caught(number) for number in range(9)], "matches": 9, "complete": True, "catching": CATCHING},
        "DELETE /v1/caught": {"deleted": 9},
        "PUT /v1/catch": {**CATCHING, "topics": "off"},
        "POST /v1/send": {"status": 200, "reason": None, "id": ID.format(0), "unique_id": ID.format(0x8000), "explanation": None, "took_ms": 3.1},
        "POST /v1/tools/check": CHECK,
        "POST /v1/tools/preview": PREVIEW,
        "POST /v1/tools/token": {"opens": True, "device": "kitchen", "topic": "com.example.chat", "environment": "production", "live": True, "ended": None, "verdict": "The token is of an app that is registered."},
        "POST /v1/tools/jwt": {"header": '{"alg":"ES256","kid":"K7F2ABCDEF"}', "claims": '{"iss":"ABCDE12345","iat":1}', "key": "K7F2ABCDEF", "team": "ABCDE12345", "age_seconds": 7200, "key_is_known": True, "accepted": False, "reason": "ExpiredProviderToken", "explanation": "It is two hours old, and one hour is the limit.", "topics": [], "environments": ["production"]},
        "POST /v1/tools/certificate": {"items": [{"kind": "certificate", "subject": "CN=com.example.chat", "key": "P-256", "topics": ["com.example.chat"], "environments": ["production"], "accepted": True}]},
        "POST /v1/tools/frame": {"bytes": 84, "items": [{"command": 2, "identifier": 7, "expiration": 0, "priority": 10, "token": "a1b2c3d4", "payload": '{"aps":{}}', "status": 0}], "rest": 0},
        "GET /v1/tokens": {"items": TOKENS, "next": None},
        "POST /v1/tokens": {**TOKENS[0], "token": "herald-0123456789"},
        "DELETE /v1/tokens/*": None,
        "GET /v1/sessions": {"items": SESSIONS, "next": None},
        "DELETE /v1/sessions/*": None,
        "GET /v1/audit": {"items": AUDIT, "next": None},
        "GET /v1/invitations": {"items": [INVITATION], "next": None},
        "POST /v1/invitations": {**INVITATION, "code": "herald-invite:AAAA-BBBB-CCCC"},
        "DELETE /v1/invitations/*": INVITATION,
        "PUT /v1/devices/*": {},
    }
