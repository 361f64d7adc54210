"""Addresses: brackets for those of version 6, commands on the folder of a service elsewhere on the loopback, health checks."""

import contextlib
import json
import os
import shlex
import socket
import subprocess

import pytest

from relay import Relay, sending
from service import HERALD, PATIENCE, TOPIC, eventually, free_port, herald


@pytest.mark.parametrize("host", ["127.0.0.2", "[::1]", "::ffff:127.0.0.2", "0.0.0.0"])
def test_commands_on_a_folder_reach_its_service(fresh, tmp_path, host):
    service = fresh("--host", host).start()
    shown = f"[{host}]" if ":" in host and "[" not in host else host
    assert f"provider API   https://{shown}:{service.listeners['api']}" in service.lines
    provider, identity = service.provider_certificate(), tmp_path / "device.pem"
    herald("device", "enroll", "--data", service.data, "--out", identity)
    agent = subprocess.Popen(
        [str(part) for part in (
            HERALD, "agent", "run", "--data", service.data, "--identity", identity, "--app", TOPIC,
            "--json",
        )], stdout=subprocess.PIPE, text=True,
    )
    try:
        events = (json.loads(line) for line in agent.stdout)
        token = next(event["token"] for event in events if event.get("token"))
        for options in ([], ["--environment", "sandbox"]):
            sent = herald("send", token, "--data", service.data, "--topic", TOPIC, "--certificate", provider,
                          "--alert", "x", *options, check=False)
            assert "accepted" in sent.stdout or "BadDeviceToken" in sent.stderr and options, sent.stderr
        herald("feedback", "--data", service.data, "--certificate", provider)
    finally:
        agent.terminate()
        agent.wait(timeout=PATIENCE)
    # Any client reaches it by what the variables say.
    variables = dict(word.split("=", 1) for word in shlex.split(herald("status", "--env", "--data", service.data).stdout))
    answer = subprocess.run(
        ["curl", "-sS", "--http2", "--cacert", variables["APNS_CA_FILE"], "--cert", provider, "-d", "{\"aps\":{\"alert\":\"x\"}}",
         "-o", os.devnull, "-w", "%{http_code}", "-H", f"apns-topic: {TOPIC}", "-H", "apns-push-type: alert",
         f"https://{variables['APNS_HOST']}:{variables['APNS_PORT']}/3/device/{token}"],
        capture_output=True, text=True, timeout=PATIENCE,
    )
    assert answer.stdout == "200", answer.stderr


def test_an_address_of_version_6_has_brackets_wherever_it_is_shown(queue, shared, tmp_path):
    relay = Relay(queue.url, "--topic", TOPIC, *sending(shared), "--relay-host", "::1").start()
    try:
        assert f"relay  http://[::1]:{relay.port}" in relay.lines
        assert fetch(f"http://[::1]:{relay.port}/health")[0] == 200
        taken = herald("relay", "run", "--database", f"sqlite://{tmp_path}/other.db", "--topic", TOPIC, *sending(shared),
                       "--relay-host", "::1", "--relay-port", relay.port, check=False)
        assert f"[::1]:{relay.port} is in use" in taken.stderr
    finally:
        relay.close()
    sent = herald("send", "ab" * 32, "--topic", TOPIC, "--certificate", shared.provider_certificate(), "--alert", "x",
                  "--service", "[::1]:1", "--data", shared.data, check=False)
    assert "[::1]:1" in sent.stderr
    wrong = herald("send", "ab" * 32, "--topic", TOPIC, "--certificate", shared.provider_certificate(), "--alert", "x",
                   "--service", "::1:2197", "--data", shared.data, check=False)
    assert "[::1]:2197, with brackets" in wrong.stderr


# MARK: Health checks


def fetch(url, *options):
    """The status, the fields and the content of curl's answer."""
    result = subprocess.run(
        ["curl", "-sS", "-i", "-g", "--max-time", str(PATIENCE), *map(str, options), url],
        check=True, capture_output=True, text=True, timeout=PATIENCE + 10,
    )
    head, _, content = result.stdout.partition("\n\n")
    lines = head.splitlines()
    return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line), content


@pytest.fixture
def relay_of(shared, queue):
    relay = Relay(queue.url, "--topic", TOPIC, *sending(shared)).start()
    yield relay
    relay.close()


def test_head_is_get_without_the_content(shared, relay_of):
    console = f"http://127.0.0.1:{shared.listeners['console']}"
    activation = f"https://localhost:{shared.listeners['activation']}"
    relay = f"http://127.0.0.1:{relay_of.port}"
    for url, options in (
        (f"{console}/health", []), (f"{console}/health/live", []), (f"{console}/", []), (f"{console}/openapi.yaml", []),
        (f"{relay}/health", []), (f"{relay}/openapi.yaml", []),
        (f"{activation}/.well-known/est/cacerts", ["--cacert", shared.ca]),
    ):
        status, fields, content = fetch(url, "--head", *options)
        plain, others, whole = fetch(url, *options)
        assert (status, content) == (plain, "") and status == 200, url
        assert whole and fields["content-type"] == others["content-type"]
        # A process may say something new of itself meanwhile.
        if "/health" not in url:
            assert fields["content-length"] == others["content-length"]
    assert fetch(f"{console}/nothing", "--head")[0] == 404


def test_haproxy_finds_the_services_up(shared, fresh, relay_of, tmp_path):
    """The plain check is `OPTIONS / HTTP/1.0`, without a field `host`."""
    control, secure = tmp_path / "haproxy.sock", fresh("--console-tls", "on").start()
    tls = f"check-ssl verify required ca-file {secure.ca}"
    servers = "\n".join(
        f"backend {name}-{kind}\n  {check}\n  server one 127.0.0.1:{service['api']} check port {port} inter 200ms {more}"
        for name, service, port, more in (
            ("console", shared.listeners, shared.listeners["console"], ""),
            ("secure", secure.listeners, secure.listeners["console"], tls),
            ("relay", shared.listeners, relay_of.port, ""),
        )
        for kind, check in (("plain", "option httpchk"), ("health", "option httpchk GET /health"),
                            ("head", "option httpchk HEAD /health HTTP/1.0"))
    )
    (tmp_path / "haproxy.cfg").write_text(
        f"global\n  stats socket {control}\ndefaults\n  mode http\n  timeout connect 30s\n  timeout client 30s\n"
        f"  timeout server 30s\n  timeout check 30s\nfrontend all\n  bind 127.0.0.1:{free_port()}\n"
        f"  default_backend console-plain\n{servers}\n"
    )
    proxy = subprocess.Popen(["haproxy", "-db", "-f", tmp_path / "haproxy.cfg"], stderr=subprocess.DEVNULL)

    def checked():
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as stream:
            stream.connect(str(control))
            stream.sendall(b"show stat\n")
            text = b"".join(iter(lambda: stream.recv(65536), b"")).decode()
            names, *rows = [line.split(",") for line in text.lstrip("# ").splitlines() if line]
            rows = [dict(zip(names, row)) for row in rows if row[1] == "one"]
            # `* L7OK`: the next check is under way. Before the first, `INI`, a server counts as up.
            found = {row["pxname"]: row["check_status"].lstrip("* ") for row in rows}
            return len(found) == 9 and set(found.values()) == {"L7OK"}
        return None

    try:
        # A check may have passed its limit of time, which is its interval.
        eventually(checked, what="nine checks that succeed")
    finally:
        proxy.terminate()
        proxy.wait(timeout=PATIENCE)
