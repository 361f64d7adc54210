"""A company network: the service's name resolves at an HTTP proxy alone, which wants a password (Debian's tinyproxy)."""

import contextlib
import os
import signal
import socket
import subprocess
import types

import pytest

from provider import away_device
from relay import Relay
from service import PATIENCE, TOPIC, Service, eventually, free_port, herald

NAME = "push.company.test"
#: In an address, `%2D` is `-`.
SECRET, ESCAPED = "s-cret.5", "s%2Dcret.5"


@pytest.fixture(scope="module")
def company(tmp_path_factory):
    folder = tmp_path_factory.mktemp("company")
    service = Service(folder / "data", "--hostname", NAME).start()
    port, log = free_port(), folder / "tinyproxy.log"
    (folder / "hosts").write_text(f"127.0.0.1 localhost {NAME}\n")
    allowed = [service.listeners[name] for name in ("api", "binary", "feedback")]
    (folder / "tinyproxy.conf").write_text(
        f"Port {port}\nListen 127.0.0.1\nTimeout 600\nLogFile \"{log}\"\nLogLevel Connect\n"
        f"BasicAuth ann {SECRET}\n" + "".join(f"ConnectPort {port}\n" for port in allowed)
    )
    log.touch(mode=0o666)
    folder.chmod(0o755)
    proxy = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c",
         f"mount --bind {folder}/hosts /etc/hosts && exec tinyproxy -d -c {folder}/tinyproxy.conf"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )

    def listens():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True

    try:
        eventually(listens, what="tinyproxy")
        yield types.SimpleNamespace(
            service=service, port=port, log=log, token=away_device(service).token,
            certificate=service.provider_certificate(), url=f"http://ann:{ESCAPED}@127.0.0.1:{port}",
        )
    finally:
        os.killpg(proxy.pid, signal.SIGKILL)
        proxy.wait(timeout=PATIENCE)
        service.close()


def environment(**more):
    plain = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return plain | more


def send(company, *options, listener="api", **variables):
    result = herald(
        "send", company.token, "--topic", TOPIC, "--certificate", company.certificate, "--ca", company.service.ca,
        "--service", f"{NAME}:{company.service.listeners[listener]}", "--alert", "x", *options, check=False,
        env=environment(**variables),
    )
    assert SECRET not in result.stderr and ESCAPED not in result.stderr
    return result


def tunnels(company):
    return company.log.read_text().count(f"CONNECT {NAME}:{company.service.listeners['api']}")


def test_the_option_and_the_variable_lead_through_the_proxy(company):
    assert "does not resolve" in send(company).stderr
    before = tunnels(company)
    assert send(company, "--proxy", company.url).returncode == 0
    assert send(company, HERALD_PROXY=company.url).returncode == 0
    assert send(company, HTTPS_PROXY=company.url).returncode == 0
    assert send(company, https_proxy=company.url, NO_PROXY="example.com").returncode == 0
    assert tunnels(company) - before == 4
    assert "does not resolve" in send(company, https_proxy=company.url, NO_PROXY="company.test").stderr
    assert "does not resolve" in send(company, "--proxy", "none", https_proxy=company.url).stderr
    assert tunnels(company) - before == 4


def test_feedback_is_read_through_the_proxy(company):
    place = f"{NAME}:{company.service.listeners['feedback']}"
    herald("feedback", "--certificate", company.certificate, "--ca", company.service.ca, "--service", place,
           "--proxy", company.url, env=environment())
    assert f"CONNECT {place}" in company.log.read_text()


def test_what_the_proxy_refuses_is_said(company):
    proxy = f"127.0.0.1:{company.port}"
    cases = [
        (f"http://{proxy}", "api", f"the proxy {proxy} wants a user and a password"),
        (f"http://ann:wrong@{proxy}", "api", f"the proxy {proxy}"),
        (company.url, "activation", f"the proxy {proxy} refuses a tunnel to {NAME}"),
        ("http://127.0.0.1:1", "api", "cannot reach the proxy 127.0.0.1:1"),
        (f"http://127.0.0.1:{company.service.listeners['console']}", "api", "the proxy 127.0.0.1"),
        ("https://127.0.0.1:1", "api", "begins with http://"),
    ]
    for url, listener, words in cases:
        result = send(company, "--proxy", url, listener=listener)
        assert result.returncode != 0 and words in result.stderr, (url, result.stderr)


@pytest.mark.parametrize("interface", ["http2", "binary"])
def test_a_relay_sends_through_the_proxy(company, queue, tmp_path, interface):
    listener = "api" if interface == "http2" else "binary"
    config = tmp_path / "relay.yaml"
    # A byte order mark, as Windows' editors write one.
    config.write_text("\ufeff" + "\n".join([
        f"database: {queue.url}", "apps:", f"  - topic: {TOPIC}", f"    certificate: {company.certificate}",
        f"    ca: {company.service.ca}", f"    service: {NAME}:{company.service.listeners[listener]}",
        f"    interface: {interface}", f"    proxy: {company.url}", "",
    ]))
    relay = Relay(queue.url, "--config", config, "--log-level", "debug").start()
    try:
        row = queue.done(queue.insert(device_token=company.token))
        assert (row["status"], row["reason"]) == ("sent", None)
        assert f"CONNECT {NAME}:{company.service.listeners[listener]}" in company.log.read_text()
        config.write_text(config.read_text().replace(company.url, f"http://ann:wrong@127.0.0.1:{company.port}"))
        relay.reload()
        eventually(lambda: any("apps reloaded" in line for line in relay.lines) or None, what="a reload")
        late = queue.insert(device_token=company.token)
        eventually(lambda: "ProxyRefused" in str(relay.get("/health")[1]) or None, what="a note of the proxy")
        assert queue.row(late)["status"] == "queued"
    finally:
        relay.close()
    assert SECRET not in "\n".join(relay.lines) and ESCAPED not in "\n".join(relay.lines)
