"""The console's port over TLS: what others reach is never in the clear."""

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess

import pytest

from commands import failed_start, one_line
from provider import away_device
from relay import sending
from service import PATIENCE, TOPIC, Service, eventually, herald


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("console-tls") / "data", "--console-tls", "on").start()
    yield service
    service.close()


def address(service, scheme="https"):
    return f"{scheme}://127.0.0.1:{service.listeners['console']}"


def curl(*arguments, check=True):
    command = ["curl", "--silent", "--show-error", "--max-time", str(PATIENCE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=check)


def ask(service, method, path, *, body=None, **fields):
    """The status, the fields and the body of an answer over TLS."""
    context = ssl.create_default_context(cafile=service.ca)
    connection = http.client.HTTPSConnection("127.0.0.1", service.listeners["console"], timeout=PATIENCE, context=context)
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    if body is not None:
        headers["content-type"] = "application/json"
    try:
        connection.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    return answer.status, answer.headers, text


def code(service):
    link = herald("console", "--data", service.data).stdout.strip()
    match = re.fullmatch(re.escape(address(service)) + "/#login=([A-Za-z0-9_-]{22})", link)
    assert match, link
    return match[1]


def test_the_port_speaks_tls_and_every_address_says_so(service):
    assert service.listeners["console_tls"] is True
    assert f"console        {address(service)}" in service.lines
    assert address(service) in herald("status", "--data", service.data).stdout
    variables = dict(line.split("=", 1) for line in herald("status", "--env", "--data", service.data).stdout.splitlines())
    assert variables["CONSOLE_URL"] == f"https://localhost:{service.listeners['console']}"
    answer = curl("--cacert", variables["APNS_CA_FILE"], variables["CONSOLE_URL"] + "/health")
    assert json.loads(answer.stdout)["status"] == "ready"
    assert curl(address(service) + "/health", check=False).returncode == 60


def test_plain_http_is_told_to_speak_tls(service):
    answer = curl("--include", address(service, "http") + "/health")
    assert answer.stdout.startswith("HTTP/1.1 400 ") and answer.stdout.endswith("use https://\n")
    with socket.create_connection(("127.0.0.1", service.listeners["console"]), timeout=PATIENCE) as silent:
        # It holds nobody up.
        assert ask(service, "GET", "/health")[0] == 200
        silent.sendall(b"G")
        assert silent.recv(1024).startswith(b"HTTP/1.1 400 ")
        assert silent.recv(1024) == b""


def test_a_session_is_for_pages_over_tls_alone(service):
    # Without `origin`, as no browser of today does it.
    status, headers, answer = ask(service, "POST", "/v1/session", body={"code": code(service)})
    assert status == 201
    port = service.listeners["console"]
    secret = rf"__Host-herald-{port}=([A-Za-z0-9_-]{{43}}); Secure; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800"
    match = re.fullmatch(secret, headers["set-cookie"])
    assert match, headers["set-cookie"]
    console = json.loads(answer)["page_secret"]
    page = {"cookie": f"__Host-herald-{port}={match[1]}", "herald_console": console}
    assert ask(service, "GET", "/v1/session", **page)[0] == 200
    # A cookie that a neighbour on another port could have set.
    assert ask(service, "GET", "/v1/session", cookie=f"herald-{port}={match[1]}", herald_console=console)[0] == 401
    for origin, expected in ((address(service, "http"), 403), (address(service), 200)):
        assert ask(service, "POST", "/v1/trust/reload", body={}, origin=origin, **page)[0] == expected, origin
    status, headers, _ = ask(service, "DELETE", "/v1/session", origin=address(service), **page)
    assert status == 204 and headers["set-cookie"].startswith(f"__Host-herald-{port}=; Secure;")
    assert ask(service, "GET", "/v1/session", **page)[0] == 401


def test_another_certificate_is_shown_without_a_restart(fresh):
    service, other = fresh("--console-tls", "on").start(), fresh().start()

    def shown(service, listener):
        return ssl.get_server_certificate(("127.0.0.1", service.listeners[listener]))

    former, wanted = shown(service, "console"), shown(other, "api")
    assert former == shown(service, "api") != wanted
    shutil.copy(other.data / "trust" / "server.pem", service.data / "trust" / "server.pem")
    eventually(lambda: shown(service, "console") == wanted, what="the other certificate")


def test_a_relay_asks_the_journal_over_tls(fresh, queue, relay):
    service = fresh("--console-tls", "on").start()
    token = away_device(service).token
    relay.options = ["--topic", TOPIC, *map(str, sending(service))]
    relay.start()
    herald("drill", "start", "silence", "--accepted", "--data", service.data)
    id = queue.insert(device_token=token)
    sent = eventually(lambda: queue.row(id)["apns_id"])
    eventually(lambda: "answer withheld" in [line["state"] for line in service.journal(sent)])
    relay.kill()
    herald("drill", "stop", "--all", "--data", service.data)
    relay.start()
    assert queue.done(id)["status"] == "sent"
    assert [line["state"] for line in service.journal(sent)].count("received") == 1
    # The log may say it was not, if the service needed more than five seconds for an answer.
    notes = lambda: json.loads(relay.get("/health")[1]).get("notes", [])
    eventually(lambda: not [note for note in notes() if "journal" in note], what="a journal that is there")


def test_a_bad_choice_is_refused_with_the_choices(tmp_path):
    assert "auto or on or off" in one_line(failed_start(tmp_path / "data", "--console-tls", "yes"))


def test_a_plain_console_that_others_reach_is_warned_about(fresh):
    service = fresh("--console-host", "0.0.0.0", "--console-tls", "off").start()
    words = "the console is plain HTTP where other machines reach it"
    (line,) = eventually(lambda: [line for line in service.lines if words in line], what="the warning")
    assert " warning " in line and "console-host=0.0.0.0" in line
    assert curl(address(service, "http") + "/health/live").returncode == 0


@pytest.mark.parametrize(
    "options, words", [
        ("console-host: 0.0.0.0\nconsole-tls: off\n", "it is plain HTTP at 0.0.0.0"),
        ("console-host: 192.0.2.1\n", "does not have 192.0.2.1 (console-host)"),
        ("console-host: 0.0.0.0\n", None),
        ("console-host: 192.0.2.1\nhostname: [192.0.2.1]\n", None),
    ],
)
def test_the_doctor_sees_what_browsers_and_networks_would(service, tmp_path, options, words):
    (tmp_path / "herald.yaml").write_text(options)
    report = json.loads(
        herald("doctor", "--json", "--data", service.data, "--config", tmp_path / "herald.yaml", check=False).stdout
    )
    found = [check for check in report["checks"] if check["level"] == "warn" and "console" in check["text"] + check["area"]]
    if words is None:
        assert found == []
    else:
        (check,) = found
        assert words in check["text"] and check["remedy"]
