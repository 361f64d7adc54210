"""The relay's HTTP API: its description, its token, its refusals, and requests of schemathesis."""

import json
import subprocess

import jsonschema
import openapi_spec_validator
import pytest
import yaml

from provider import listening_device
from relay import Relay, SQLiteQueue, sending
from service import PATIENCE, ROOT, TOPIC, eventually

NOBODY = "cd" * 32
DESCRIPTION = ROOT / "Sources" / "Provider" / "HeraldRelay" / "Resources" / "openapi.yaml"


@pytest.fixture(scope="module")
def api(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("api")
    queue = SQLiteQueue(folder / "queue.db")
    relay = Relay(queue.url, "--topic", TOPIC, *sending(shared, "--api-token", folder / "api.token")).start()
    relay.token = (folder / "api.token").read_text().strip()
    relay.queue = queue
    yield relay
    relay.close()


@pytest.fixture(scope="module")
def description():
    return yaml.safe_load(DESCRIPTION.read_text())


def test_the_served_description_is_valid_and_the_manuals(api, description):
    assert api.get("/openapi.yaml") == (200, DESCRIPTION.read_text())
    openapi_spec_validator.validate(description)


def test_requests_without_the_token_are_refused(api, shared, tmp_path):
    for method, path in (("PUT", "/v1/devices"), ("POST", "/v1/pushes"), ("GET", "/v1/pushes/1"), ("GET", "/v1/status")):
        for token in (None, "x" * 64, api.token[:-1]):
            status, body = api.ask(method, path, token=token)
            assert status == 401 and "token" in json.loads(body)["error"]
    closed = Relay(f"sqlite://{tmp_path}/q.db", "--topic", TOPIC, *sending(shared)).start()
    assert closed.get("/v1/status", token=api.token)[0] == 404
    assert closed.get("/health")[0] == 200
    closed.close()


def test_only_the_owner_can_read_the_token_file(api):
    path = next(option for option in api.options if option.endswith("api.token"))
    mode = subprocess.run(["stat", "-c", "%a", path], capture_output=True, text=True, check=True).stdout.strip()
    assert mode == "600"


def test_register_enqueue_and_look_up(api, shared, description):
    device = listening_device(shared)
    before = json.loads(api.get("/v1/status", token=api.token)[1])["devices"]
    status, _ = api.ask("PUT", "/v1/devices", {
        "device_token": device.token.upper(), "topic": TOPIC, "user_name": "ann", "languages": ["de-CH", "en"],
    }, token=api.token)
    assert status == 200
    payload = {"aps": {"alert": "Grüezi"}}
    push = {"user_name": "ann", "topic": TOPIC, "payload": payload, "collapse_id": "Tür 1"}
    status, body = api.ask("POST", "/v1/pushes", push, token=api.token)
    assert status == 201
    id = json.loads(body)["id"]

    def look():
        answer = json.loads(api.get(f"/v1/pushes/{id}", token=api.token)[1])
        return answer if answer["status"] != "queued" else None

    record = eventually(look)
    schema = {"$ref": "#/components/schemas/Record", "components": description["components"]}
    jsonschema.validate(record, schema)
    assert record["status"] == "sent" and record["outcomes"][0]["device_token"] == device.token
    message = device.next()
    assert message.json == payload and "apns-collapse-id:Tür 1" in message.properties
    progress = json.loads(api.get("/v1/status", token=api.token)[1])
    jsonschema.validate(progress, {"$ref": "#/components/schemas/Progress", "components": description["components"]})
    assert progress["devices"] == before + 1
    device.stop()


def test_every_number_and_key_reaches_the_app_as_it_was_written(api, shared):
    numbers = '9007199254740993,18446744073709551615,1.10,1e400,-0,0.1E-999'
    keys = '"caf\u00e9":1,"cafe\u0301":2'
    payload = f'{{"z":[{numbers}],{keys},"aps":{{"alert":"x"}}}}'
    template = '{"aps":{"alert":"{{n}} of {{m}}"},"z":["{{n}}","{{m}}",{{NUMBERS}}],{{KEYS}}}'
    template = template.replace("{{NUMBERS}}", numbers).replace("{{KEYS}}", keys)
    api.queue.run("INSERT INTO push_templates (name, payload) VALUES ('digits', ?)", template)
    filled = template.replace('"{{n}}"', "1e400").replace('"{{m}}"', "9007199254740993")
    filled = filled.replace("{{n}}", "1e400").replace("{{m}}", "9007199254740993")
    parameters = '{"n":1e400,"m":9007199254740993}'
    with listening_device(shared) as device:
        row = {"device_token": device.token}
        head = f'"device_token":"{device.token}","topic":"{TOPIC}"'

        def post(content):
            status, answer = api.ask("POST", "/v1/pushes", f"{{{head},{content}}}".encode(), token=api.token)
            assert status == 201, answer
            return device.next().payload.decode()

        assert post(f'"payload":{payload}') == payload
        assert post(f'"payload":{json.dumps(payload)}') == payload
        assert post(f'"template":"digits","parameters":{parameters}') == filled
        api.queue.insert(**row, payload=payload)
        assert device.next().payload.decode() == payload
        api.queue.insert(**row, payload=None, template="digits", parameters=parameters)
        assert device.next().payload.decode() == filled


@pytest.mark.parametrize("field, values, words", [
    ("priority", "3 1e400 5.5 18446744073709551615 true", "must be 10, 5 or 1"),
    ("expiration", "-1 1e400 9223372036854775808 1.5 253402300800 true", "must be whole seconds since 1970, at most ten years ahead"),
])
def test_a_number_out_of_its_range_is_refused_by_name(api, field, values, words):
    for value in values.split():
        body = f'{{"topic":"{TOPIC}","device_token":"{NOBODY}","payload":{{}},"{field}":{value}}}'
        status, answer = api.ask("POST", "/v1/pushes", body.encode(), token=api.token)
        assert status == 400 and f"`{field}` {words}" in json.loads(answer)["error"], (value, answer)


@pytest.mark.parametrize("body, words", [
    ({}, "`topic` is missing"), ({"topic": TOPIC}, "the recipient is missing"), ({"topic": "a b", "user_name": "x"}, "topic"),
    ({"topic": TOPIC, "user_name": "ann"}, "the content is missing"), ({"topic": TOPIC, "device_token": "x", "payload": {}}, "2 to 200 hex"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": "[1]"}, "JSON object"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {}, "priority": 3}, "priority"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {}, "send_after": "soon"}, "send_after"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {}, "send_after": "2099-01-01T00:00:00+02:00"}, "ten years ahead"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {}, "give_up_at": "2026-11-21T02:34:56+02"}, "give_up_at"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {}, "expiration": 1795000000000}, "expiration"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {}, "expiration": 300}, "expiration"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {"x": "y" * 6000}}, "JSON object"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {}, "collapse_id": "a\tb"}, "`collapse_id` must be 1 to 64 bytes of printable"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {}, "collapse_id": "\x85"}, "`collapse_id` must be 1 to 64 bytes of printable"),
    ({"topic": 7}, "wrong type"), ([], "wrong type"),
    ({"topic": TOPIC, "device_tokn": NOBODY, "payload": {}}, "unknown key `device_tokn`: did you mean `device_token`?"),
    ({"topic": TOPIC, "device_token": NOBODY, "payload": {}, "Priority": 5}, "unknown key `Priority`"),
])
def test_an_unsendable_notification_is_refused_with_a_reason(api, body, words):
    status, answer = api.ask("POST", "/v1/pushes", body, token=api.token)
    assert status == 400 and words in json.loads(answer)["error"]


def test_a_time_may_have_any_offset(api):
    for moment, status in (("2026-01-01T01:00:00+02:00", "expired"), ("2026-01-01T01:00:00.5-12:30", "expired")):
        body = {"topic": TOPIC, "device_token": NOBODY, "payload": {}, "send_after": "2025-06-01T12:00:00+05:30", "give_up_at": moment}
        code, answer = api.ask("POST", "/v1/pushes", body, token=api.token)
        assert code == 201
        path = f"/v1/pushes/{json.loads(answer)['id']}"
        eventually(lambda: json.loads(api.get(path, token=api.token)[1])["status"] == status, what=status)


def test_a_misspelt_key_is_named_in_the_refusal(api):
    status, answer = api.ask("PUT", "/v1/devices", {"device_token": NOBODY, "topic": TOPIC, "usr": "x"}, token=api.token)
    assert status == 400 and "unknown key `usr`: the keys are device_token, topic," in json.loads(answer)["error"]


def test_a_too_long_body_is_refused(api):
    status, _ = api.ask("POST", "/v1/pushes", {"topic": TOPIC, "user_name": "x" * 300_000, "payload": {}}, token=api.token)
    assert status == 413


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(api, tmp_path):
    result = subprocess.run(
        [
            str(ROOT / ".build" / "venv" / "bin" / "schemathesis"), "run", str(DESCRIPTION),
            "--url", f"http://127.0.0.1:{api.port}", "--header", f"Authorization: Bearer {api.token}",
            "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
            "--max-examples", "40", "--seed", "5223", "--phases", "examples,coverage,fuzzing",
            # On a busy machine everything is slow.
            "--request-timeout", str(PATIENCE), "--suppress-health-check", "too_slow",
        ],
        capture_output=True, text=True, cwd=tmp_path,
    )
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]


def test_other_hosts_are_refused(api):
    """Another site's page that lets its name resolve to the relay's address reads nothing."""
    for host, status in (("attacker.example", 421), ("localhost", 200), ("127.0.0.1", 200)):
        for path in ("/health/live", "/metrics"):
            answer = subprocess.run(
                ["curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--header", f"host: {host}:{api.port}", f"http://127.0.0.1:{api.port}{path}"],
                capture_output=True, text=True, check=True,
            )
            assert answer.stdout == str(status), (host, path)
