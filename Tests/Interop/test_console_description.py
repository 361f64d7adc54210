"""The description of the console's requests: valid OpenAPI, complete, and true."""

import json
import re
import urllib.error
import urllib.request
from urllib.parse import quote

import jsonschema
import openapi_spec_validator
import pytest
import yaml

import channels
from parties import new_id
from provider import Provider
from service import PATIENCE, ROOT, TEAM, TOPIC, eventually, herald

@pytest.fixture(scope="module")
def description():
    return yaml.safe_load(herald("console", "description").stdout)


def operations(description):
    """The method and the path of every request."""
    for path, item in description["paths"].items():
        for method in {"get", "post", "put", "delete"} & item.keys():
            yield method, path


def ask(service, method, path, body=None, authorized=True, host=None):
    """The status, the content type and the body of an answer."""
    token = (service.data / "run" / "admin.token").read_text().strip()
    headers = {"authorization": f"Bearer {token}"} if authorized else {}
    if host:
        headers["host"] = host
    if body is not None:
        headers["content-type"] = "application/json"
    request = urllib.request.Request(
        f"http://127.0.0.1:{service.listeners['console']}{path}", method=method, headers=headers,
        data=None if body is None else json.dumps(body).encode(),
    )
    try:
        answer = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, (answer.headers["content-type"] or "").split(";")[0], answer.read().decode()


def test_the_served_description_is_that_of_the_command(shared):
    status, kind, text = ask(shared, "GET", "/openapi.yaml", authorized=False)
    assert (status, kind) == (200, "application/yaml")
    assert text == herald("console", "description").stdout


def test_the_description_is_valid(description):
    openapi_spec_validator.validate(description)


def names(value):
    """The names of all properties that a description has anywhere."""
    if isinstance(value, dict):
        if isinstance(value.get("properties"), dict):
            yield from value["properties"]
        for each in value.values():
            yield from names(each)
    elif isinstance(value, list):
        for each in value:
            yield from names(each)


def test_the_properties_are_in_snake_case(description):
    relay = yaml.safe_load((ROOT / "Sources" / "Provider" / "HeraldRelay" / "Resources" / "openapi.yaml").read_text())
    for text in (description, relay):
        found = set(names(text))
        assert len(found) >= 20
        assert [name for name in sorted(found) if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)] == []


def conform(description, method, path, status, kind, text):
    """An answer is one that the description has."""
    answer = description["paths"][path][method]["responses"][str(status)]
    if "$ref" in answer:
        answer = description["components"]["responses"][answer["$ref"].rsplit("/", 1)[1]]
    if "content" not in answer:
        assert text == ""
        return None
    schema = answer["content"][kind]["schema"]
    value = json.loads(text) if kind == "application/json" else text
    jsonschema.validate(value, {**schema, "components": description["components"]})
    return value


def fleet_answers(check, service, device):
    """Asks about devices and invitations, and for credentials."""
    one = f"/v1/devices/{device}"
    assert check("get", "/v1/devices/{id}", actual=one)["apps"] == []
    check("get", "/v1/devices/{id}", 404, actual="/v1/devices/nobody")
    check("get", "/v1/devices", 400, actual="/v1/devices?connected=perhaps")
    labels = {"room": "hall"}
    assert check("put", "/v1/devices/{id}/labels", actual=f"{one}/labels", body={"labels": labels})["labels"] == labels
    check("put", "/v1/devices/{id}/labels", 400, actual=f"{one}/labels", body={"labels": {"a=b": "c"}})
    check("put", "/v1/devices/{id}/labels", 404, actual="/v1/devices/nobody/labels", body={"labels": {}})
    check("post", "/v1/devices/{id}/disconnect", 409, actual=f"{one}/disconnect")
    token = "/v1/devices/{id}/apps/{topic}/token"
    check("post", token, 404, actual=f"{one}/apps/{TOPIC}/token")
    made = check("post", "/v1/invitations", body={"uses": 3})
    assert made["code"] and made["uses"] == 3
    assert [entry["id"] for entry in check("get", "/v1/invitations")["items"]] == [made["id"]]
    check("post", "/v1/invitations", 400, body={"uses": 0})
    known = check("post", "/v1/invitations", body={"device": device})
    assert known["device"] == device
    check("delete", "/v1/invitations/{id}", actual=f"/v1/invitations/{known['id']}")
    check("post", "/v1/invitations", 404, body={"device": "nobody"})
    check("post", "/v1/invitations", 400, body={"device": device, "uses": 2})
    selected = "/v1/devices?label=room&unused=true&offline_days=1"
    assert check("get", "/v1/devices", actual=selected)["items"] == [], "it was made today"
    check("get", "/v1/devices", 400, actual="/v1/devices?label=a%3D")
    tokens = "/v1/apps/{topic}/tokens"
    assert check("post", tokens, actual=f"/v1/apps/{TOPIC}/tokens?label=room")["items"] == []
    check("post", tokens, 400, actual=f"/v1/apps/{TOPIC}/tokens?environment=moon")
    for status in (200, 409):
        check("delete", "/v1/invitations/{id}", status, actual=f"/v1/invitations/{made['id']}")
    check("post", "/v1/credentials/certificate", 400, body={"csr": "nonsense", "topics": [TOPIC]})
    check("post", "/v1/credentials/key", 400, body={"public_key": "nonsense", "team": TEAM})


def test_every_route_answers_as_described(fresh, description):
    service = fresh("--clock", "adjustable").start()
    certificate, key = service.provider_certificate(TOPIC), service.provider_key()
    _, device = service.device()
    asked = set()

    def check(method, path, status=200, *, actual=None, **options):
        got, kind, text = ask(service, method.upper(), actual or path, **options)
        assert got == status, text
        asked.add((method, path))
        return conform(description, method, path, got, kind, text)

    for path in ("/", "/openapi.yaml", "/health", "/health/ready", "/health/live", "/metrics"):
        check("get", path, authorized=False)
    check("get", "/v1/status")
    check("get", "/v1/journal", actual=f"/v1/journal?device={device}&limit=3")
    check("get", "/v1/journal", 400)
    with Provider(service, key=key) as provider:
        unique = channels.publish(provider, channels.create(provider), expiration=channels.soon())
    assert check("get", "/v1/channels", actual=f"/v1/channels?topic={TOPIC}")["items"][0]["stored"]
    check("get", "/v1/channels", 400, actual="/v1/channels?topic=a..b")
    assert check("get", "/v1/journal", actual=f"/v1/journal?id={unique}")
    check("get", "/v1/journal", 400, actual=f"/v1/journal?id={new_id()}&limit=10001")
    life = check("get", "/v1/journal/{id}", actual=f"/v1/journal/{unique}?wait=1&until=final")
    assert len(life["words"]) == len(life["lines"]) > 1
    for status, path in ((404, new_id()), (400, "nothing"), (400, f"{unique}?wait=61")):
        check("get", "/v1/journal/{id}", status, actual=f"/v1/journal/{path}")
    search = {"q": f"id:{unique}", "after": "-1h", "limit": 1}
    first = check("post", "/v1/journal/search", body=search)
    second = check("post", "/v1/journal/search", body={**search, "cursor": first["cursor"]})
    assert [first["items"][0], second["items"][0]] == life["lines"][:-3:-1]
    check("post", "/v1/journal/search", 400, body={"q": "colour:red"})
    check("post", "/v1/journal/search", 413, body={"q": "x" * 70_000})
    (app,) = check("get", "/v1/apps", actual=f"/v1/apps?topic={TOPIC}&limit=1")["items"]
    assert (app["team"], app["channels"], app["unused"]) == (TEAM, 1, False)
    assert check("get", "/v1/apps", actual="/v1/apps?unused=true") == {"items": [], "next": None}
    check("get", "/v1/apps", 400, actual="/v1/apps?limit=0")
    made = check("post", "/v1/channels", 201, body={"topic": TOPIC, "policy": 0})
    check("post", "/v1/channels", 400, body={"topic": TOPIC})
    check("post", "/v1/channels", 413, body={"topic": "x" * 70_000, "policy": 0})
    for status, id in ((200, made["id"]), (404, made["id"]), (400, "!")):
        check("delete", "/v1/channels/{id}", status, actual=f"/v1/channels/{quote(id, safe='')}")
    forget = "/v1/apps/{topic}/forget"
    check("post", forget, 409, actual=f"/v1/apps/{TOPIC}/forget")
    check("post", forget, 404, actual="/v1/apps/com.example.none/forget")
    check("post", forget, 400, actual=f"/v1/apps/{TOPIC}/forget?environment=both")
    by_kind = {entry["kind"]: entry["id"] for entry in check("get", "/v1/credentials")["items"] if entry["id"] != "console"}
    for id in by_kind.values():
        check("get", "/v1/credentials/{id}", actual=f"/v1/credentials/{id}")
    check("get", "/v1/credentials/{id}", 404, actual="/v1/credentials/nobody")
    fleet_answers(check, service, device)
    for id in by_kind.values():
        path = f"/v1/credentials/{id}/revoke"
        check("post", "/v1/credentials/{id}/revoke", actual=path)
        check("post", "/v1/credentials/{id}/revoke", 409, actual=path)
    check("post", "/v1/credentials/{id}/revoke", 404, actual="/v1/credentials/nobody/revoke")
    assert check("get", "/v1/devices")["items"][0]["id"] == device
    for status in (200, 409):
        check("post", "/v1/devices/{id}/revoke", status, actual=f"/v1/devices/{device}/revoke")
    check("post", "/v1/devices/{id}/revoke", 404, actual="/v1/devices/nobody/revoke")
    check("post", "/v1/trust/reload")
    link = check("post", "/v1/links", 201, body={"role": "viewer", "name": "Ada"})
    check("post", "/v1/links", 400, body={"role": "owner"})
    check("post", "/v1/session", 201, body={"code": link["code"]}, authorized=False)
    check("post", "/v1/session", 401, body={"code": link["code"]}, authorized=False)
    check("post", "/v1/session", 400, body={}, authorized=False)
    check("get", "/v1/session")
    check("delete", "/v1/session", 204)
    (session,) = check("get", "/v1/sessions")["items"]
    for status in (204, 404):
        check("delete", "/v1/sessions/{id}", status, actual=f"/v1/sessions/{session['id']}")
    token = check("post", "/v1/tokens", 201, body={"name": "ci", "role": "viewer", "days": 1})
    check("post", "/v1/tokens", 409, body={"name": "ci", "role": "viewer"})
    check("post", "/v1/tokens", 400, body={"name": "ci", "role": "viewer", "days": 0})
    assert len(check("get", "/v1/tokens")["items"]) == 1
    for status in (204, 404):
        check("delete", "/v1/tokens/{id}", status, actual=f"/v1/tokens/{token['id']}")
    assert check("get", "/v1/audit", actual="/v1/audit?limit=2")["next"]
    check("get", "/v1/audit", 400, actual="/v1/audit?before=x")
    check("get", "/v1/clock")
    check("post", "/v1/clock/advance", body={"seconds": 1.5})
    check("post", "/v1/clock/accept")
    check("post", "/v1/clock/advance", 400, body={"seconds": 1e12})
    check("post", "/v1/clock/advance", 400, body={"minutes": 1})
    check("post", "/v1/clock/advance", 413, body={"seconds": 1, "more": "x" * 70_000})
    refusal = {"kind": "refuse", "reason": "Unregistered", "share": "5%", "topic": TOPIC, "for": "600s", "seed": 7}
    drills = [check("post", "/v1/drills", body=refusal) for _ in range(16)]
    check("post", "/v1/drills", 409, body=refusal)
    check("post", "/v1/drills", 400, body={"kind": "nothing"})
    check("post", "/v1/drills", 413, body={"kind": "drop", "more": "x" * 70_000})
    assert check("get", "/v1/drills") and drills[0]["seed"] == 7
    eventually(lambda: check("get", "/v1/problems")["items"], what="the problem that drills run")
    for status, id in ((200, drills[0]["id"]), (404, 999), (400, "first")):
        check("post", "/v1/drills/{id}/stop", status, actual=f"/v1/drills/{id}/stop")
    lease = check("post", "/v1/drills", body={"kind": "drop", "lease": "60s", "first": 2})["id"]
    for status, id in ((200, lease), (404, drills[1]["id"]), (400, "first")):
        check("post", "/v1/drills/{id}/renew", status, actual=f"/v1/drills/{id}/renew")
    check("post", "/v1/drills", 400, body={"kind": "drop", "lease": "30s", "for": "60s"})
    assert len(check("post", "/v1/drills/stop")) == 16
    assert check("put", "/v1/catch", body={"topics": [TOPIC], "minutes": 5})["topics"] == [TOPIC]
    check("put", "/v1/catch", 400, body={"topics": "some"})
    check("put", "/v1/catch", 413, body={"topics": "all", "more": "x" * 70_000})
    check("get", "/v1/caught", actual="/v1/caught?q=tag:a&wait=0&limit=3")
    check("get", "/v1/caught", 400, actual="/v1/caught?q=colour:red")
    check("get", "/v1/caught/{id}", 404, actual=f"/v1/caught/{new_id()}")
    check("get", "/v1/caught/{id}", 400, actual="/v1/caught/x")
    assert check("put", "/v1/catch", body={"topics": "off"})["topics"] == "off"
    check("get", "/v1/caught", 409, actual="/v1/caught?wait=1")
    assert check("delete", "/v1/caught", actual="/v1/caught?q=tag:a") == {"deleted": 0}
    order = {"to": {"token": "00" * 32, "topic": TOPIC}, "payload": {"aps": {"alert": "hi"}}}
    assert check("post", "/v1/send", body=order)["reason"] == "BadDeviceToken"
    assert len(check("post", "/v1/send", body={**order, "to": [order["to"]] * 2})["items"]) == 2
    check("post", "/v1/send", 404, body={**order, "to": {"device": "nobody", "topic": TOPIC}})
    check("post", "/v1/send", 400, body={**order, "headers": {"x-y": "z"}})
    check("post", "/v1/send", 413, body={**order, "more": "x" * 70_000})
    check("get", "/v1/announcement")
    assert check("post", "/v1/announcement/renew")["devices"]["expired"] == 0
    check("post", "/v1/announcement/told", actual="/v1/announcement/told?label=room=nowhere")
    check("post", "/v1/announcement/told", 400)
    check("post", "/v1/announcement/told", 404, actual="/v1/announcement/told?device=nobody")
    check("get", "/v1/credentials")
    # The notification above was refused.
    eventually(lambda: check("get", "/v1/refusals")["items"], what="the group of the refusal")
    check("get", "/v1/problems", actual="/v1/problems?history=1")
    check("get", "/v1/problems", 400, actual="/v1/problems?history=all")
    assert len(check("get", "/v1/series", actual="/v1/series?names=received")["series"]["received"]) == 900
    check("get", "/v1/series", 400, actual="/v1/series?range=1y")
    assert check("get", "/v1/tallies", actual=f"/v1/tallies?app={TOPIC}&by=state&from=-31d")["sums"]["received"] == 1
    check("get", "/v1/tallies", 400, actual="/v1/tallies?from=-90d")
    check("get", "/v1/events", 400, actual="/v1/events?want=everything")
    check("post", "/v1/tools/check", body={"payload": {"aps": {"allert": "x"}}})
    check("post", "/v1/tools/preview", body={"payload": {"aps": {"alert": "x"}}, "languages": ["en", "de"]})
    check("post", "/v1/tools/token", body={"text": "00" * 32})
    check("post", "/v1/tools/jwt", body={"text": "a.b.c"})
    check("post", "/v1/tools/certificate", body={"text": (service.data / "ca.pem").read_text()})
    check("post", "/v1/tools/frame", body={"text": "09"})
    for tool in ("check", "preview", "token", "jwt", "certificate", "frame"):
        check("post", f"/v1/tools/{tool}", 400, body={"text": 7})
        check("post", f"/v1/tools/{tool}", 413, body={"more": "x" * 70_000})
    described = set(operations(description))
    assert asked == described
    for method, path in described:
        if path.startswith("/v1/") and description["paths"][path][method]["x-role"] != "none":
            check(method, path, 401, actual=path.replace("{id}", "x").replace("{topic}", "x"), authorized=False)


def test_a_revocation_that_is_not_in_force_says_so_until_it_is(fresh, description):
    service = fresh().start()
    ids = {"devices": service.device()[1], "credentials": service.provider_key()[1]}
    keys = service.data / "trust" / "token.keys"
    whole = keys.read_bytes()
    keys.write_bytes(b"nonsense")

    def revoke(kind):
        status, content, text = ask(service, "POST", f"/v1/{kind}/{ids[kind]}/revoke")
        return status, conform(description, "post", f"/v1/{kind}/{{id}}/revoke", status, content, text)["error"]

    for kind, id in ids.items():
        for _ in range(2):
            status, words = revoke(kind)
            assert status == 500
            assert words.startswith(f"{id} is revoked, but may not be in force yet") and "token.keys is damaged" in words
    keys.write_bytes(whole)
    for kind in ids:
        assert revoke(kind)[0] == 409


def test_a_foreign_host_is_answered_as_described(shared, description):
    for method, path in operations(description):
        actual = path.replace("{id}", "x").replace("{topic}", "x")
        answer = ask(shared, method.upper(), actual, host="attacker.example")
        assert answer[0] == 421
        conform(description, method, path, *answer)


def test_a_journal_has_lines_as_described(shared, parties, description):
    with parties.provider() as provider:
        provider.push(parties.token)
        provider.push(parties.token)
    status, kind, text = ask(shared, "GET", f"/v1/journal?topic={TOPIC}")
    lines = conform(description, "get", "/v1/journal", status, kind, text)
    assert {"replacement", "reason"} <= {name for line in lines for name in line}


def test_a_clock_without_control_is_not_moved(shared, description):
    answer = ask(shared, "POST", "/v1/clock/advance", body={"seconds": 1})
    assert answer[0] == 409
    conform(description, "post", "/v1/clock/advance", *answer)


def test_the_device_list_has_the_connection_state(fresh, enroll):
    service = fresh().start()
    phone, tablet = enroll(service), enroll(service)

    def connected():
        status, _, text = ask(service, "GET", "/v1/devices")
        assert status == 200
        return {entry["id"]: entry["connected"] for entry in json.loads(text)["items"]}

    assert connected() == {phone.id: False, tablet.id: False}
    link = phone.connect()
    assert connected() == {phone.id: True, tablet.id: False}
    link.leave()
    eventually(lambda: not connected()[phone.id])
