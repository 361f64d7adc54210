"""Apple's names: refused in tests, and led to the service by `as_apple`, whatever a client is made of."""

import asyncio
import multiprocessing
import socket
import ssl
import subprocess
import sys

import pytest
import uvloop
from aioapns import APNs, NotificationRequest

from herald_testing import AppleRefused

TOPIC = "com.example.chat"
PATIENCE = 60
#: Made at import, before any fixture: it trusts the authorities of the system alone.
CONTEXT = ssl.create_default_context()
RESOLVE = "import socket; socket.getaddrinfo('api.push.apple.com', 443)"


async def announce(token, key, text):
    client = APNs(key=key.pem, key_id=key.key_id, team_id=key.team_id, topic=TOPIC)
    answer = await client.send_notification(NotificationRequest(device_token=token, message={"aps": {"alert": text}}))
    client.pool.close()
    return answer.status


def announce_in_another_process(token, key, text):
    sys.exit(0 if asyncio.run(announce(token, key, text)) == "200" else 1)


@pytest.mark.parametrize(
    "host",
    ["api.push.apple.com", "API.Push.Apple.COM.", b"api.sandbox.push.apple.com", "gateway.push.apple.com", "feedback.sandbox.push.apple.com",
     "api-manage-broadcast.push.apple.com", "push.apple.com"],
)
def test_a_test_does_not_reach_apple(host):
    for resolve in (lambda: socket.getaddrinfo(host, 443), lambda: socket.gethostbyname(host), lambda: socket.gethostbyname_ex(host)):
        with pytest.raises(AppleRefused, match="a test must not reach Apple.*as_apple"):
            resolve()


def test_nothing_else_is_refused():
    assert socket.getaddrinfo("localhost", 443) and socket.gethostbyname("localhost")
    for host in ("xpush.apple.com", "push.apple.com.example.invalid"):
        with pytest.raises(socket.gaierror) as error:
            socket.getaddrinfo(host, 443)
        assert not isinstance(error.value, AppleRefused)


def test_a_process_of_a_test_does_not_reach_apple_either():
    result = subprocess.run([sys.executable, "-c", RESOLVE], capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 1 and "a test must not reach Apple" in result.stderr


def test_an_event_loop_of_uvloop_does_not_reach_apple():
    with pytest.raises(AppleRefused):
        uvloop.run(connect(ssl.create_default_context()))


async def connect(context):
    """The subject of the certificate that is shown under Apple's name."""
    _, writer = await asyncio.open_connection("api.push.apple.com", 443, ssl=context)
    names = [value for kind, value in writer.get_extra_info("peercert")["subjectAltName"] if kind == "DNS"]
    writer.close()
    return names


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_context_that_was_made_at_import_trusts_the_service(as_apple, run):
    assert "api.push.apple.com" in run(connect(CONTEXT))


def test_a_client_with_uvloop_reaches_the_service(as_apple, device):
    token = device.install(TOPIC)
    assert uvloop.run(announce(token, as_apple.provider_key(), "by uvloop")) == "200"
    assert device.wait_for(TOPIC).body == "by uvloop"


@pytest.mark.parametrize("way", ["spawn", "fork"])
def test_a_worker_in_a_process_of_its_own_reaches_the_service(as_apple, device, way):
    """As a worker of Celery has one: it starts within the fixture."""
    token, key = device.install(TOPIC), as_apple.provider_key()
    process = multiprocessing.get_context(way).Process(target=announce_in_another_process, args=(token, key, f"by {way}"))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 0
    assert device.wait_for(TOPIC).body == f"by {way}"


def test_the_addresses_are_variables_for_a_process_of_any_language(herald):
    found = herald.variables
    assert found["APNS_HOST"] == herald.host and int(found["APNS_PORT"]) == herald.api_port
    assert found["APNS_CA_FILE"] == str(herald.ca) and found["CONSOLE_TOKEN"] in (herald.data / "run" / "admin.token").read_text()
