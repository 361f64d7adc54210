"""Secrets that a relay reads from files and settings: a wrong one is refused, and nowhere shown."""

import http.server
import json
import os
import threading

import pytest

from relay import Relay, asking, sending
from service import TOPIC, eventually, herald

SECRET = "c0ffee5ecret"
KEY = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def secret(tmp_path):
    """Writes a file with something that is not to be seen."""
    def write(text, name="console.token"):
        path = tmp_path / name
        path.touch(mode=0o600)
        path.write_text(text)
        return path

    return write


def refused(queue, *options, **environment):
    result = herald(
        "relay", "run", "--database", queue.url, "--relay-port", "0", *options, check=False, env=os.environ | environment
    )
    assert result.returncode != 0
    assert SECRET not in result.stdout + result.stderr
    return result.stderr


@pytest.mark.parametrize("text", [KEY, f"{SECRET}\n{SECRET}\n", f"{SECRET} x", f"{SECRET}\x00", f"{SECRET}é", "", SECRET * 400])
def test_a_file_that_is_not_that_of_a_token_is_refused_at_the_start(queue, shared, secret, text):
    path = secret(text)
    options = [*sending(shared)[:-1], path, "--topic", TOPIC]
    assert f"{path} is not the file of a token" in refused(queue, *options)
    assert f"{path} is not the file of a token" in refused(
        queue, *sending(shared), "--topic", TOPIC, "--api-token", path
    )


def test_a_file_that_becomes_another_is_not_shown_by_health_and_log(queue, shared, secret):
    """A console that refuses the token makes the relay read the file again."""
    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path.write_text(KEY)
            self.send_response(401)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    path = secret("aGoodToken")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as console:
        threading.Thread(target=console.serve_forever, daemon=True).start()
        options = [*sending(shared)[: -len(asking(shared))], "--console", f"http://127.0.0.1:{console.server_port}"]
        relay = Relay(queue.url, "--topic", TOPIC, *options, "--console-token", path, "--log-level", "debug").start()
        try:
            notes = eventually(lambda: json.loads(relay.get("/health")[1])["notes"], what="a note on the journal")
            assert f"{path} is not the file of a token: it holds a key or a certificate" in notes[0]
            shown = [relay.get(path)[1] for path in ("/health", "/metrics")]
        finally:
            relay.close()
            console.shutdown()
    assert SECRET not in str(shown) + "\n".join(relay.lines)


@pytest.mark.parametrize("option, value, words", [
    ("--database", f"postgresql://ann:pass/{SECRET}@127.0.0.1:1/chat", "%40 for @"),
    ("--database", f"postgresql://ann:pass@{SECRET}@127.0.0.1:1/chat", "%40 for @"),
    ("--proxy", f"socks5://ann:{SECRET}@127.0.0.1:1", "begins with http://"),
    ("--proxy", f"http://ann:pass/{SECRET}@127.0.0.1:1", "write http://proxy.example.com:3128"),
    ("--console", f"http://ann:{SECRET}@127.0.0.1:1", "`console` must be an address"),
    ("--console", f"http://127.0.0.1:1/?token={SECRET}", "`console` must be an address"),
    ("--console", f"http://127.0.0.1:1/#{SECRET}", "`console` must be an address"),
    ("--service", f"https://ann:{SECRET}@127.0.0.1:1", "`service` must be a host and a port"),
    ("--database", f"sqlite:///tmp/q.db?key={SECRET}", "%3F for ?"),
    ("--database", f"postgresql://127.0.0.1:1/chat#{SECRET}", "%23 for #"),
    ("--relay-host", f"http://127.0.0.1/?token={SECRET}", "relay-host cannot be"),
])
def test_a_setting_with_a_secret_is_refused_unseen(queue, shared, option, value, words):
    assert words in refused(queue, *sending(shared), "--topic", TOPIC, option, value)


@pytest.mark.parametrize("variable", ["HERALD_CERTIFICATE", "HERALD_API_TOKEN"])
def test_a_key_in_place_of_a_path_is_not_shown(queue, shared, variable):
    options = sending(shared) if variable == "HERALD_API_TOKEN" else []
    assert "a text in PEM stands where the path of its file belongs" in refused(queue, "--topic", TOPIC, *options, **{variable: KEY})
