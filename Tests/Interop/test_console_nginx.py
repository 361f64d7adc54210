"""The console behind Debian's nginx, with the example that the package has: streams, addresses, links, and who may say them."""

import contextlib
import http.client
import json
import re
import ssl
import subprocess

import pytest

from commands import failed_start, one_line
from provider import Provider, listening_device
from service import PATIENCE, ROOT, TOPIC, eventually, free_port, herald
from test_console_live import lines

NAME = "console.example.com"
EXAMPLE = ROOT / "Packaging" / "examples" / "nginx" / "herald.conf"
MAIN = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr;
events {{}}
http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; include {folder}/herald.conf; }}
"""


@pytest.fixture
def proxied(fresh, tmp_path):
    """A service, and an nginx before its console with the example's settings; `port` is that of nginx."""
    port = free_port()
    service = fresh("--console-url", f"https://{NAME}:{port}/", "--console-proxies", "127.0.0.1").start()
    certificate, key = tmp_path / "nginx.pem", tmp_path / "nginx.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", f"/CN={NAME}",
         "-addext", f"subjectAltName=DNS:{NAME}", "-out", certificate, "-keyout", key], check=True, capture_output=True, timeout=PATIENCE,
    )
    text = EXAMPLE.read_text()
    for written, here in {
        "listen 443": f"listen 127.0.0.1:{port}", "listen [::]:443": f"listen [::1]:{port}", f"/etc/ssl/certs/{NAME}.pem": certificate,
        f"/etc/ssl/private/{NAME}.key": key, "http://127.0.0.1:2190": f"http://127.0.0.1:{service.listeners['console']}",
    }.items():
        assert text.count(written) == 1, written
        text = text.replace(written, str(here))
    (tmp_path / "herald.conf").write_text(text)
    (tmp_path / "nginx.conf").write_text(MAIN.format(folder=tmp_path))
    service.proxy, service.trust = port, ssl.create_default_context(cafile=certificate)
    nginx = subprocess.Popen(["/usr/sbin/nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: (tmp_path / "nginx.pid").exists() or nginx.poll() is not None, what="nginx")
        assert nginx.poll() is None, nginx.stderr.read()
        yield service
    finally:
        nginx.terminate()
        nginx.wait(timeout=PATIENCE)
        nginx.stderr.close()


class Secure(http.client.HTTPSConnection):
    """A connection to nginx from an address, with the name of the console."""

    def __init__(self, service, source):
        super().__init__("127.0.0.1", service.proxy, timeout=PATIENCE, context=service.trust, source_address=(source, 0))

    def connect(self):
        http.client.HTTPConnection.connect(self)
        self.sock = self._context.wrap_socket(self.sock, server_hostname=NAME)


def answer(connection, method, path, body=None, **fields):
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    connection.request(method, path, body=json.dumps(body) if body else None, headers=headers)
    return connection.getresponse()


def test_a_person_signs_in_and_reads_events_behind_nginx(proxied):
    address = f"https://{NAME}:{proxied.proxy}"
    link = herald("console", "--data", proxied.data, "--name", "Ada").stdout.strip()
    (code,) = re.fullmatch(re.escape(address) + r"/#login=([\w-]{22})", link).groups()
    page = {"host": f"{NAME}:{proxied.proxy}", "origin": address, "content_type": "application/json", "x_forwarded_for": "203.0.113.7"}
    with contextlib.closing(Secure(proxied, "127.0.0.9")) as browser:
        session = answer(browser, "POST", "/v1/session", {"code": code}, **page)
        cookie, secret = session.headers["set-cookie"], json.loads(session.read())["page_secret"]
        assert session.status == 201 and cookie.startswith(f"__Host-herald-{proxied.proxy}=") and "Secure" in cookie
        page |= {"cookie": cookie.split(";")[0], "herald_console": secret}
        audit = json.loads(answer(browser, "GET", "/v1/audit", **page).read())["items"]
        assert [(line["action"], line["target"], line["from"]) for line in audit if line.get("proof") != "socket"] == [
            ("POST /v1/session", "admin Ada", "127.0.0.9")
        ]

        # Events come while the answer goes on.
        with listening_device(proxied) as device, Provider(proxied, certificate=proxied.provider_certificate(TOPIC)) as provider:
            with contextlib.closing(answer(browser, "GET", "/v1/events?want=lines", **page)) as stream:
                assert stream.headers["content-type"] == "text/event-stream"
                first = provider.push(device.token).id
                assert {line["id"].lower() for line in lines(stream)[0]} == {first.lower()}


def test_only_a_trusted_proxy_says_who_the_client_is(proxied):
    token = (proxied.data / "run" / "admin.token").read_text().strip()

    def ask(source, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", proxied.listeners["console"], timeout=PATIENCE, source_address=(source, 0))
        with contextlib.closing(connection):
            result = answer(connection, "POST", "/v1/drills", {"kind": "none"}, authorization=f"Bearer {token}", content_type="application/json", **fields)
            result.read()
            return result.status

    def caller(source, forwarded):
        before = len(refused())
        assert ask(source, x_forwarded_for=forwarded) == 400
        eventually(lambda: len(refused()) > before, what="a line of the audit")
        return json.loads(refused()[-1])["from"]

    def refused():
        file = proxied.data / "audit" / "refused.jsonl"
        return file.read_text().splitlines() if file.exists() else []

    # The last address that is not a proxy's counts; nothing behind an address that is none.
    assert caller("127.0.0.1", "203.0.113.7") == "203.0.113.7"
    assert caller("127.0.0.1", "198.51.100.1, 2001:db8::7 ,127.0.0.1") == "2001:db8::7"
    assert caller("127.0.0.1", "203.0.113.7, somebody") == "127.0.0.1"
    assert caller("127.0.0.1", "203.0.113.7%x") == "127.0.0.1"
    assert caller("127.0.0.1", "") == "127.0.0.1"
    assert caller("127.0.0.2", "203.0.113.7") == "127.0.0.2"
    # So does the host that it asked for.
    assert ask("127.0.0.1", x_forwarded_host="evil.example") == 421
    assert ask("127.0.0.1", host="proxy.internal", x_forwarded_host=NAME) == 400
    assert ask("127.0.0.2", host="proxy.internal", x_forwarded_host=NAME) == 421


@pytest.mark.parametrize("url", ["console.example.com", "https://x.example/herald", "https://user@x.example", "ftp://x.example"])
def test_a_wrong_address_of_the_console_is_named(url, tmp_path):
    said = one_line(failed_start(tmp_path / "data", "--console-url", url))
    assert "console-url" in said and "https://console.example.com" in said
