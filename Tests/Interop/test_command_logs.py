"""Logs: at their loudest they hold no payload, no token, no key, and nothing that a peer could forge a line with."""

import base64
import contextlib
import json
import os
import re
import signal
import socket

import pytest

from parties import assert_accepted, remove_app
from provider import Disconnected, Provider, away_device, base64url, listening_device, provider_token
from service import PATIENCE, TOPIC, herald

CANARY = "kanarienvogel"


def exercise(service, tmp_path):
    """Uses every part of a service, with canaries in all secrets; returns the secrets."""
    certificate = service.provider_certificate(TOPIC, "com.example.other")
    key = service.provider_key()
    path, kid, team = key
    secrets = {"payload": CANARY, "collapse": f"{CANARY}-collapse"}
    payload = {"aps": {"alert": CANARY}, CANARY: CANARY}
    device = listening_device(service)
    away = away_device(service)
    gone = away_device(service)
    secrets |= {"token": device.token, "token of the absent": away.token, "token of the removed": gone.token}
    remove_app(gone)
    tokens = [provider_token(key), provider_token(key, age=9999), provider_token((path, "ZZZZZZZZZZ", team))]
    with Provider(service, certificate) as provider:
        for target in (device, away):
            assert_accepted(provider.push(target.token, payload, collapse_id=secrets["collapse"]))
        device.next()
        for options in (
            {"priority": 99}, {"id": CANARY}, {"push_type": CANARY}, {"expiration": CANARY}, {"topic": CANARY + "!"},
            {"collapse_id": CANARY * 9}, {"path": f"/3/{CANARY}/{away.token}"}, {"method": "DELETE"}, {"topic": "com.no"},
            {"topic": "com.example.other"}, {"headers": [("apns-priority", "5"), ("apns-priority", "5")]},
            {"payload": b"[%s]" % CANARY.encode()}, {"payload": CANARY.encode() * 999}, {"explain": 1, "priority": CANARY},
        ):
            provider.push(away.token, **({"payload": payload} | options))
        provider.push(gone.token, payload)
        provider.push("00" * 32, payload)
    for n, token in enumerate(tokens):
        secrets[f"provider token {n}"] = token
        secrets[f"signature {n}"] = token.rpartition(".")[2]
        with Provider(service) as provider:
            provider.push(away.token, payload, authorization=f"bearer {token}")
            provider.push(away.token, payload, authorization=f"bearer {token}x")
    with Provider(service, certificate) as provider:
        # A field for each terminal and log format to trip over.
        for value in ("\x1b[31mred", "a\nlevel=error", "“”\u2028", '"}{"level":"critical'):
            try:
                provider.push(away.token, payload, topic=value, headers=[("x-evil", value), ("user-agent", value)])
            except Disconnected:
                break
    herald("token", "inspect", away.token, "--data", service.data)
    herald("provider", "revoke", "--data", service.data, kid)
    herald("device", "revoke", "--data", service.data, device.id)
    device.process.wait(timeout=PATIENCE)
    for name, file in {"p8": path, "provider": certificate, "device": away.path}.items():
        body = re.search(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n(.*?)-----END", file.read_text(), re.S)[1]
        secrets[f"key of {name}"] = body.splitlines()[1]
    with away.start():
        away.next()
    service.stop()
    for file in service.data.joinpath("trust").rglob("*"):
        if file.is_file() and b"PRIVATE KEY" not in file.read_bytes() and len(file.read_bytes()) in range(16, 129):
            raw = file.read_bytes()
            secrets[f"{file.name} in hex"] = raw.hex()
            secrets[f"{file.name} in base64"] = base64.b64encode(raw).decode()[:40]
    secrets["admin token"] = service.admin_token
    return secrets


@pytest.mark.slow
@pytest.mark.parametrize("format", ["text", "json"])
def test_no_secret_is_ever_logged(fresh, tmp_path, format):
    service = fresh("--log-level", "trace", "--log-format", format).start()
    service.admin_token = (service.data / "run" / "admin.token").read_text().strip()
    secrets = exercise(service, tmp_path)
    logged = [line for line in service.lines if "://" not in line[:30] and line != "ready"]
    assert len(logged) > 10, "a log at its loudest says something"
    text = "\n".join(service.lines)
    for name, secret in secrets.items():
        assert secret.lower() not in text.lower(), f"the {name} is in the log"
        assert base64url(secret.encode())[:40] not in text, f"the {name} is in the log, in base64"
    assert "\x1b" not in text and "\u2028" not in text
    if format == "json":
        for line in logged:
            entry = json.loads(line)
            assert {"time", "level", "logger", "message"} <= set(entry), line
    else:
        for line in logged:
            assert re.match(r"\d{4}-\d\d-\d\dT\S+Z (trace|debug|info|notice|warning|error|critical) \S+: ", line), line


def test_the_default_log_is_short(fresh):
    """Nothing per notification: a thousand of them leave no line each."""
    service = fresh().start()
    token = away_device(service).token
    with Provider(service, service.provider_certificate()) as provider:
        assert_accepted(provider.push(token))
        before = len(service.lines)
        provider.push_many([token] * 500 + ["00" * 32] * 500)
    service.stop()
    assert len(service.lines) - before < 50


def test_a_log_that_nobody_reads_stops_nobody(fresh, tmp_path):
    """A log shipper that stalls: the pipe takes 64 KiB, and the service goes on."""
    pipe = tmp_path / "log"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    try:
        service = fresh("--log-level", "debug", prefix=("bash", "-c", f'exec "$@" 2>{pipe}', "bash")).start()
        token, certificate = away_device(service).token, service.provider_certificate()
        for _ in range(1500):
            # Each is a line at this level.
            with socket.create_connection(("127.0.0.1", service.listeners["api"]), timeout=PATIENCE) as silent:
                silent.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionError):
                    silent.recv(100)
        with Provider(service, certificate) as provider:
            assert_accepted(provider.push(token))
        # The lines of the meantime come when somebody reads.
        os.kill(service.pid, signal.SIGHUP)
        text = b""
        while b"configuration reloaded" not in text:
            text += os.read(reader, 65536)
        assert len(text) > 65536
        service.stop()
    finally:
        os.close(reader)
