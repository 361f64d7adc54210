"""The console for people who test: what is caught, sending, and the tools."""

import json
import os
import pathlib
import queue
import select
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import pytest
import yaml

import channels
from binary import Binary, framed
from provider import Provider, away_device, listening_device, provider_token
from service import HERALD, PATIENCE, TEAM, TOPIC, Service, eventually, herald, once_within, open_connections


def ask(service, method, path, body=None, status=200, **query):
    """The JSON of an answer of the console."""
    token = (service.data / "run" / "admin.token").read_text().strip()
    text = "?" + urllib.parse.urlencode(query) if query else ""
    request = urllib.request.Request(
        f"http://127.0.0.1:{service.listeners['console']}{path}{text}", method=method,
        headers={"authorization": f"Bearer {token}", "content-type": "application/json"}, data=None if body is None else json.dumps(body).encode(),
    )
    try:
        answer = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        value = json.load(answer)
    assert answer.status == status, value
    return value


def status_of_a_wait(service, token, path):
    """The status of a short wait."""
    address = f"http://127.0.0.1:{service.listeners['console']}{path}0.05"
    try:
        return urllib.request.urlopen(urllib.request.Request(address, headers={"authorization": f"Bearer {token}"})).status
    except urllib.error.HTTPError as error:
        return error.code


def listed(service, path, **query):
    """The items of a list."""
    value = ask(service, "GET", path, **query)
    return value["items"] if isinstance(value, dict) else value


def caught(service, query="", **options):
    return ask(service, "GET", "/v1/caught", q=query, **options)["items"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A service that catches everything, with a device that is away, one that listens, and a provider's key."""
    service = Service(tmp_path_factory.mktemp("inbox") / "data", "--catch", "all").start()
    try:
        away = away_device(service)
        with listening_device(service) as device:
            service.away, service.awake, service.key = away, device, service.provider_key()
            yield service
    finally:
        service.close()


def test_a_push_is_caught_with_its_answer_and_no_secret(scene):
    with Provider(scene, key=scene.key) as provider:
        answer = provider.push(
            scene.awake.token, {"aps": {"alert": "hi"}}, priority="10", push_type="alert", headers=[("herald-tag", "one")]
        )
    (entry,) = caught(scene, "tag:one", wait=50)
    assert entry["id"] == answer.id and entry["status"] == answer.status == 200
    assert (entry["topic"], entry["device"], entry["provider"]) == (TOPIC, scene.awake.id, scene.key[1])
    assert json.loads(entry["payload"]) == {"aps": {"alert": "hi"}} and entry["findings"] == 0
    # An acknowledgement that takes a moment comes after the answer.
    assert entry["explanation"].startswith(("delivered: ", "stored: Herald has sent it"))
    assert entry["headers"]["apns-priority"] == "10"
    assert scene.awake.token not in json.dumps(entry) and "authorization" not in entry["headers"]
    assert ask(scene, "GET", f"/v1/caught/{answer.id}") == entry
    assert ask(scene, "GET", f"/v1/caught/{entry['unique_id']}") == entry


def test_what_is_refused_is_caught_with_its_reason(scene):
    tag = [("herald-tag", "refused")]
    with Provider(scene, key=scene.key) as provider:
        provider.push("00" * 32, headers=tag)
        provider.push(scene.away.token, b"{", headers=tag)
        provider.push(scene.away.token, {"aps": {"allert": "x"}}, push_type="nothing", headers=tag)
    with Provider(scene) as stranger:
        stranger.push(scene.away.token, headers=tag)
    found = caught(scene, "tag:refused", wait=50)
    assert [each["reason"] for each in found] == ["MissingProviderToken", "InvalidPushType", "BadPayload", "BadDeviceToken"]
    assert "provider" not in found[0] and found[1]["findings"] > 0
    assert len(caught(scene, "tag:refused -reason:BadPayload status:400")) == 2


def test_a_wait_is_answered_as_soon_as_a_push_comes_and_parallel_tests_see_their_own(scene):
    results = queue.Queue()

    def wait(tag):
        results.put((tag, caught(scene, f"tag:{tag}", wait=50)))

    threads = [threading.Thread(target=wait, args=(tag,)) for tag in ("left", "right")]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    with Provider(scene, key=scene.key) as provider:
        provider.push(scene.away.token, {"aps": {"alert": "r"}, "herald": {"tag": "right"}})
        assert results.get(timeout=PATIENCE)[0] == "right" and results.empty()
        provider.push(scene.away.token, {"aps": {"alert": "l"}, "herald": {"tag": "left"}})
    tag, (entry,) = results.get(timeout=PATIENCE)
    assert (tag, json.loads(entry["payload"])["aps"]["alert"]) == ("left", "l")
    # Before the end of the wait.
    assert time.monotonic() - begun < 49
    assert ask(scene, "DELETE", "/v1/caught", q="tag:left") == {"deleted": 1}
    assert caught(scene, "tag:left") == [] and len(caught(scene, "tag:right")) == 1
    assert caught(scene, "tag:left", wait="0.05") == []


def test_a_wait_ends_when_enough_came_and_says_so_otherwise(scene):
    results = queue.Queue()
    wanted = {"q": "tag:count", "count": 3, "until": "status:200", "limit": 2, "wait": 50}
    waiting = threading.Thread(target=lambda: results.put(ask(scene, "GET", "/v1/caught", **wanted)))
    waiting.start()
    with Provider(scene, key=scene.key) as provider:
        for token in ("00" * 32, "00" * 32, "00" * 32, scene.away.token):
            provider.push(token, headers=[("herald-tag", "count")])
    found = results.get(timeout=PATIENCE)
    waiting.join()
    assert (found["complete"], found["matches"], len(found["items"])) == (True, 4, 2)
    assert found["items"][0]["status"] == 200 and found["items"][0]["answered"] >= found["items"][0]["time"]
    late = ask(scene, "GET", "/v1/caught", q="tag:count", count=5, wait="0.05")
    assert (late["complete"], late["matches"], len(late["items"])) == (False, 4, 4)
    for name, words in (("q", "'tagg:x' in q"), ("until", "'tagg:x' in until")):
        assert words in ask(scene, "GET", "/v1/caught", status=400, **{"q": "", name: "tagg:x"})["error"]
    assert "count" in ask(scene, "GET", "/v1/caught", status=400, count=0)["error"]
    for method in ("GET", "DELETE"):
        assert "unknown parameter `tag`: they are q" in ask(scene, method, "/v1/caught", status=400, tag="count")["error"]
    assert len(caught(scene, "tag:count")) == 4


@pytest.mark.parametrize("path", ["/v1/caught?q=tag:nothing&wait=", f"/v1/journal/{uuid.UUID(int=7)}?wait="])
def test_the_places_of_clients_that_have_gone_are_free_at_once(scene, path):
    token = (scene.data / "run" / "admin.token").read_text().strip()
    request = f"GET {path}60 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n".encode()

    def attempt():
        clients = []
        while not clients or not select.select([clients[-1]], [], [], 0.5)[0]:
            clients.append(socket.create_connection(("127.0.0.1", scene.listeners["console"]), PATIENCE))
            clients[-1].sendall(request)
        assert clients[-1].recv(4096).startswith(b"HTTP/1.1 429")
        for client in clients:
            client.close()
        begun = time.monotonic()
        eventually(lambda: status_of_a_wait(scene, token, path) in (200, 404))
        return time.monotonic() - begun

    once_within(30, attempt)


def test_a_wait_for_what_no_message_can_have_is_refused_at_once(scene):
    for query, words in (("status:999", "one of 0, 1, "), ("id:xyz", "a UUID"), ("tag:", "1 to 64"), ("tag:" + "x" * 65, "1 to 64")):
        for method, name in (("GET", "q"), ("GET", "until"), ("DELETE", "q")):
            assert words in ask(scene, method, "/v1/caught", status=400, **{name: query})["error"]
    # The kept part of a longer tag can be asked for, and a payload of any depth has its tag.
    with Provider(scene, key=scene.key) as provider:
        provider.push(scene.away.token, headers=[("herald-tag", "y" * 80)])
        deep = '{"a":' + "[" * 600 + "]" * 600 + ',"aps":{},"herald":{"tag":"deep"}}'
        provider.push(scene.away.token, deep.encode())
    assert len(caught(scene, "tag:" + "y" * 64)) == len(caught(scene, "tag:deep")) == 1


def test_no_route_ignores_a_parameter_a_key_or_a_body(scene):
    paths = yaml.safe_load(herald("console", "description").stdout)["paths"]
    routes = [(path.replace("{", "").replace("}", ""), method.upper(), route)
              for path, methods in paths.items() if path.startswith("/v1/")
              for method, route in methods.items() if method in ("get", "post", "put", "delete")]
    assert len(routes) > 50
    for path, method, route in routes:
        error = ask(scene, method, path, status=400, nonsense=1)["error"]
        assert error.startswith("unknown parameter `nonsense`"), (method, path, error)
        if method != "GET":
            error = ask(scene, method, path, {"nonsense": 1}, status=400)["error"]
            words = "unknown key `nonsense`" if "requestBody" in route else "this request takes no body"
            assert error.startswith(words), (method, path, error)
    drill = {"kind": "refuse", "reason": "Unregistered", "for": "1s"}
    for path, body, words in (
        ("/v1/drills", {**drill, "frist": 2}, "`frist`: did you mean `first`?"),
        ("/v1/send", {"to": {"token": "00", "topic": TOPIC}, "payload": {}, "header": {}}, "`header`: did you mean `headers`?"),
        ("/v1/send", {"to": {"token": "00", "topic": TOPIC}, "payload": {}, "expiration": 1}, "`expiration`: the keys are to, "),
    ):
        assert words in ask(scene, "POST", path, body, status=400)["error"]
    assert "`minute`: did you mean `minutes`?" in ask(scene, "PUT", "/v1/catch", {"topics": "all", "minute": 1}, status=400)["error"]
    assert ask(scene, "GET", "/v1/drills") == [] and "true or false" in ask(scene, "GET", "/v1/apps", status=400, unused="yes")["error"]


def test_broadcasts_and_the_binary_interface_are_caught(scene):
    with Provider(scene, key=scene.key) as provider:
        channels.publish(provider, channels.create(provider), headers=[("herald-tag", "cast")])
    (entry,) = caught(scene, "tag:cast", wait=50)
    assert entry["headers"]["apns-channel-id"] and entry["topic"] == TOPIC and entry["device"] == ""
    known = {each["id"] for each in listed(scene, "/v1/credentials")}
    certificate = scene.provider_certificate(TOPIC)
    (provider,) = {each["id"] for each in listed(scene, "/v1/credentials")} - known
    with Binary(scene, certificate) as client:
        client.send(framed(7, scene.away.token, b'{"aps":{},"herald":{"tag":"old"}}'))
        (entry,) = caught(scene, "tag:old", wait=50)
    assert (entry["interface"], entry["status"], entry["headers"]["identifier"]) == ("binary", 0, "7")
    assert entry["provider"] == provider


def test_the_console_sends_as_any_provider_does(scene):
    order = {
        "to": {"device": scene.awake.id, "topic": TOPIC}, "payload": {"aps": {"alert": "from the console"}},
        "headers": {"apns-push-type": "alert", "herald-tag": "sent"},
    }
    answer = ask(scene, "POST", "/v1/send", order)
    assert answer["status"] == 200 and answer["explanation"].startswith(("delivered: ", "stored: Herald has sent it"))
    assert answer["took_ms"] > 0
    message = scene.awake.next()
    while message.json != order["payload"]:
        message = scene.awake.next()
    eventually(lambda: any(line["state"].startswith("delivered") for line in ask(scene, "GET", "/v1/journal", id=answer["id"])))
    lines = ask(scene, "GET", "/v1/journal", id=answer["id"])
    assert {line.get("provider", "console") for line in lines} == {"console"}
    (entry,) = caught(scene, "tag:sent")
    assert entry["provider"] == "console" and entry["id"] == answer["id"]
    assert [each["id"] for each in listed(scene, "/v1/credentials") if each["id"] == "console"] == ["console"]
    # It claims no topic: its first user still can.
    with Provider(scene, key=scene.key) as provider:
        assert provider.push(scene.away.token, topic=TOPIC).status == 200
    assert {app.get("owner") for app in listed(scene, "/v1/apps", topic=TOPIC)} == {TEAM}
    ask(scene, "POST", "/v1/credentials/console/revoke", {}, status=409)


def test_the_console_sends_after_a_change_to_another_authority(fresh):
    service, other = fresh("--provider-idle", "5s").start(), fresh().start()
    order = {"to": {"token": away_device(service).token, "topic": TOPIC}, "payload": {"aps": {"alert": "x"}}}
    assert ask(service, "POST", "/v1/send", order)["status"] == 200
    certificate = pathlib.Path("trust", "server.pem")
    for path, new in ((service.ca, other.ca), (service.data / certificate, other.data / certificate)):
        draft = path.with_name("next.pem")
        draft.write_bytes(new.read_bytes())
        draft.chmod(0o600)
        draft.rename(path)

    def shown(service):
        return ssl.get_server_certificate(("127.0.0.1", service.listeners["api"]))

    eventually(lambda: shown(service) == shown(other), what="the other certificate")
    eventually(lambda: not open_connections(service.pid, service.listeners["api"]), what="the end of the idle connection")
    assert ask(service, "POST", "/v1/send", order)["status"] == 200


def test_the_console_sends_to_tokens_lists_and_channels_and_gets_true_refusals(scene):
    def send(to, status=200, **more):
        return ask(scene, "POST", "/v1/send", {"to": to, "payload": {"aps": {"alert": "x"}}, **more}, status=status)

    token = {"token": scene.away.token, "topic": TOPIC}
    answers = send([token, {"token": "00" * 32, "topic": TOPIC}])["items"]
    assert [(each["status"], each.get("reason")) for each in answers] == [(200, None), (400, "BadDeviceToken")]
    with Provider(scene, key=scene.key) as provider:
        channel = channels.create(provider)
    assert send({"channel": channel, "topic": TOPIC}, headers={"apns-push-type": "liveactivity"})["status"] == 200
    assert send(token, environment="sandbox")["reason"] == "BadDeviceToken"
    herald("drill", "start", "refuse", "--reason", "TooManyRequests", "--data", scene.data)
    try:
        assert send(token)["reason"] == "TooManyRequests"
    finally:
        herald("drill", "stop", "--all", "--data", scene.data)
    assert "not registered" in send({"device": scene.away.id, "topic": "com.example.else"}, status=404)["error"]
    assert "no field" in send(token, status=400, headers={"authorization": "x"})["error"]
    assert "apns-priority" in send(token, status=400, headers={"apns-priority": "7"})["error"]
    assert "list of 1 to 100" in send([token] * 101, status=400)["error"]


def test_the_tools_read_what_people_have(scene):
    def tool(name, status=200, **body):
        return ask(scene, "POST", f"/v1/tools/{name}", body, status=status)

    check = tool("check", payload='{"aps":{"allert":"x"}}')
    assert (check["accepted"], check["size"], check["limit"], check["binary"]) == (True, 22, 4096, {"limit": 2048, "status": 0})
    assert any(finding["place"] == "aps.allert" for finding in check["findings"])
    broken = tool("check", payload="{")
    assert broken["http2"] == {"status": 400, "reason": "BadPayload"}
    preview = tool("preview", payload={"aps": {"alert": {"loc-key": "READY"}}}, languages=["en", "de"])
    assert preview["languages"] == ["en", "de"] and preview["presentations"][0]["body"] == "READY"
    assert {"locked", "foreground", "style none"} <= {view["state"] for view in preview["presentations"]}
    token = tool("token", text=scene.away.token)
    assert (token["device"], token["topic"], token["live"]) == (scene.away.id, TOPIC, True)
    assert tool("token", text="00" * 32)["verdict"].startswith("BadDeviceToken")
    jwt = tool("jwt", text="bearer " + provider_token(scene.key))
    assert jwt["accepted"] and jwt["key_is_known"] and (jwt["key"], jwt["team"]) == scene.key[1:]
    assert json.loads(jwt["claims"])["iss"] == TEAM and abs(jwt["age_seconds"]) < 60
    old = tool("jwt", text=provider_token(scene.key, age=7200))
    assert (old["accepted"], old["reason"], old["age_seconds"] >= 7200) == (False, "ExpiredProviderToken", True)
    assert tool("jwt", text=f"{provider_token(scene.key)[:-4]}AAAA")["reason"] == "InvalidProviderToken"
    pem = scene.provider_certificate(TOPIC).read_text()
    assert "private key" in tool("certificate", text=pem, status=400)["error"]
    public = pem[:pem.index("-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----\n"
    (item,) = tool("certificate", text=public)["items"]
    assert (item["topics"], item["environments"], item["accepted"]) == ([TOPIC], ["production", "sandbox"], True)
    (authority,) = tool("certificate", text=(scene.data / "ca.pem").read_text())["items"][:1]
    assert not authority["accepted"] and authority["explanation"]
    frame = framed(9, scene.away.token, b'{"aps":{}}', priority=5).hex()
    found = tool("frame", text=frame + "0000")
    assert found["items"][0]["identifier"] == 9 and found["items"][0]["payload"] == '{"aps":{}}' and found["rest"] == 2
    assert found["items"][0]["token"] == scene.away.token[:8] + "…"
    assert tool("frame", text="09")["items"] == [
        {"status": 128, "fault": "not a frame of command 0, 1 or 2, or an item is doubled or has a wrong length"}
    ]
    assert "hexadecimal" in tool("frame", text="zz", status=400)["error"]


def bytes_below(folder, word):
    """The files that have a word."""
    return [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and word in path.read_bytes()]


@pytest.mark.parametrize("options", [("--catch", "off"), ("--catch", "all")])
def test_a_caught_payload_is_in_no_file(fresh, tmp_path, options):
    secret = b"canary-" + os.urandom(8).hex().encode()
    service = fresh(*options, "--log-level", "trace").start()
    payload = b'{"aps":{"alert":"%s"}}' % secret
    with listening_device(service) as device:
        # To be delivered at once or not at all, so the store never has it.
        with Provider(service, key=service.provider_key()) as provider:
            assert provider.push(device.token, payload, expiration=0).status == 200
            provider.push("00" * 32, payload)
        device.next()
    count = 0 if "off" in options else 2
    assert len(caught(service)) == count
    health = ask(service, "GET", "/health")
    assert ("notes" in health) == bool(count)
    metrics = urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/metrics", timeout=PATIENCE).read()
    assert (b"\nherald_catching 1" in metrics) == bool(count)
    herald("backup", "--data", service.data, tmp_path / "copy")
    lines = "\n".join(service.lines)
    assert ("payloads are caught" in lines) == bool(count)
    service.stop()
    assert secret.decode() not in "\n".join(service.lines)
    assert bytes_below(tmp_path, secret) == []
    service.options = ["--catch", "off"]
    service.start()
    assert caught(service) == []


def test_catching_is_switched_for_a_time_and_off_forgets(fresh):
    service = fresh("--clock", "adjustable").start()
    token = away_device(service).token
    key = service.provider_key()
    assert "nothing is caught" in ask(service, "GET", "/v1/caught", status=409, wait=5)["error"]
    state = ask(service, "PUT", "/v1/catch", {"topics": [TOPIC], "minutes": 5})
    assert state["topics"] == [TOPIC] and state["until"]
    with Provider(service, key=key) as provider:
        provider.push(token)
        assert len(caught(service)) == 1
        herald("clock", "advance", "6m", "--data", service.data)
        assert ask(service, "GET", "/v1/caught")["catching"]["topics"] == "off"
        provider.push(token)
    assert len(caught(service)) == 1
    ask(service, "PUT", "/v1/catch", {"topics": "all"})
    assert ask(service, "PUT", "/v1/catch", {"topics": "off"}) == {"topics": "off", "messages": 0, "limit": 1000}


def test_a_public_address_catches_nothing_unless_told_to(tmp_path):
    result = subprocess.run(
        [HERALD, "serve", "--data", tmp_path / "data", "--host", "0.0.0.0", "--catch", "all"],
        capture_output=True, text=True, timeout=PATIENCE,
    )
    assert result.returncode != 0 and "--catch-in-public" in result.stderr
