"""Access to the console: links, sessions, tokens and roles, and what foreign sites try."""

import concurrent.futures
import http.client
import json
import re
import socket
import stat

import pytest
import yaml

from commands import one_line
from service import PATIENCE, Service, herald

DESCRIPTION = yaml.safe_load(herald("console", "description").stdout)
ROLES = ["viewer", "sender", "admin"]
#: Every request below `/v1`, with its least role.
REQUESTS = [
    (method.upper(), path, operation["x-role"])
    for path, item in DESCRIPTION["paths"].items()
    for method, operation in item.items()
    if path.startswith("/v1/") and method in ("get", "post", "put", "delete")
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("access") / "data").start()
    yield service
    service.close()


@pytest.fixture(scope="module")
def tokens(service):
    """A token of each role."""
    return {role: make_token(service, f"test-{role}", role) for role in ROLES}


def make_token(service, name, role):
    return json.loads(herald("console", "token", "--data", service.data, "--name", name, "--role", role, "--json").stdout)["token"]


def ask(service, method, path, *, token=None, cookie=None, body=None, kind="application/json", source="127.0.0.1", **fields):
    """The status, the fields and the body of an answer; a `_` in the name of a field is a `-`."""
    port = service.listeners["console"]
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    if token:
        headers["authorization"] = f"Bearer {token}"
    if cookie:
        headers["cookie"] = cookie
    if body is not None:
        headers["content-type"] = kind
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=(source, 0))
    try:
        connection.request(method, path, body=json.dumps(body) if isinstance(body, dict) else body, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    return answer.status, answer.headers, json.loads(text) if text and "json" in answer.headers["content-type"] else text


def origin(service):
    return f"http://127.0.0.1:{service.listeners['console']}"


def code(service, *options):
    link = herald("console", "--data", service.data, *options).stdout.strip()
    match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#login=([A-Za-z0-9_-]{22})", link)
    assert match and int(match[1]) == service.listeners["console"], link
    return match[2]


def sign_in(service, *options):
    """The cookie and the page's secret of a new session."""
    return signed_in(service, code=code(service, *options))


def signed_in(service, **proof):
    status, headers, answer = ask(service, "POST", "/v1/session", body=proof)
    assert status == 201, answer
    return headers["set-cookie"].split(";")[0], answer["page_secret"]


def page(service, method, path, session, **more):
    """A request as the console's page makes it."""
    cookie, secret = session
    return ask(service, method, path, cookie=cookie, origin=origin(service), herald_console=secret, **more)


def actual(path):
    return path.replace("{id}", "none").replace("{topic}", "com.example.none")


def test_each_role_may_do_what_the_description_says_and_no_more(service, tokens):
    """Every request, by a token and a cookie of each role, and without one."""
    wrong = []
    cookies = {role: sign_in(service, "--role", role) for role in ROLES}
    for method, path, least in REQUESTS:
        if path in ("/v1/session", "/v1/events", "/v1/clock/accept"):
            continue
        body = None if method in ("GET", "DELETE") else {}
        for role in ROLES:
            if ROLES.index(role) >= ROLES.index(least) and method != "GET":
                # It would change the service; its refusal is not a question of roles.
                body = "not json" if method != "DELETE" else None
            answers = [
                ask(service, method, actual(path), token=tokens[role], body=body),
                page(service, method, actual(path), cookies[role], body=body),
            ]
            for status, _, answer in answers:
                refused = status == 403 and "this needs the role" in str(answer)
                if refused != (ROLES.index(role) < ROLES.index(least)) or status == 401:
                    wrong.append((method, path, role, status, answer))
        status, _, answer = ask(service, method, actual(path), body=body)
        if status != 401:
            wrong.append((method, path, "nobody", status, answer))
    assert wrong == []


def test_a_request_without_a_row_needs_an_admin(service, tokens):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        body = None if method == "DELETE" else {}
        answers = [ask(service, method, "/v1/status", token=token, body=body) for token in (*tokens.values(), None)]
        assert [status for status, _, _ in answers] == [403, 403, 405, 401], method
        for status, _, answer in answers[:2]:
            assert "this needs the role admin" in answer["error"]
        for path in ("/v1/nothing", "/v1/devices/x/nothing"):
            assert {ask(service, method, path, token=token, body=body)[0] for token in tokens.values()} == {404}


def test_a_code_works_once_and_its_cookie_only_for_our_page(service):
    used = code(service, "--name", "Ada", "--role", "viewer")
    status, headers, answer = ask(service, "POST", "/v1/session", body={"code": used})
    assert (status, answer["name"], answer["role"]) == (201, "Ada", "viewer")
    port = service.listeners["console"]
    assert re.fullmatch(rf"herald-{port}=[A-Za-z0-9_-]{{43}}; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800", headers["set-cookie"])
    cookie = headers["set-cookie"].split(";")[0], answer["page_secret"]
    status, _, answer = ask(service, "POST", "/v1/session", body={"code": used})
    assert status == 401 and "herald console" in answer["error"]
    assert page(service, "GET", "/v1/session", cookie)[0] == 200
    assert ask(service, "GET", "/v1/status", cookie=f"herald-{port}=wrong", herald_console=cookie[1])[0] == 401
    status, headers, _ = page(service, "DELETE", "/v1/session", cookie)
    assert status == 204 and "Max-Age=0" in headers["set-cookie"]
    assert page(service, "GET", "/v1/session", cookie)[0] == 401


def test_the_cookie_alone_opens_nothing(service):
    """It reaches every server on the host; the page's secret does not, and belongs to its session alone."""
    (cookie, secret), (other, theirs) = sign_in(service), sign_in(service)
    for wrong in ("1", "", theirs, cookie.partition("=")[2]):
        assert ask(service, "GET", "/v1/status", cookie=cookie, herald_console=wrong)[0] == 401, wrong
    assert ask(service, "GET", "/v1/status", cookie=cookie)[0] == 401
    assert ask(service, "GET", "/v1/status", herald_console=secret)[0] == 401
    assert ask(service, "GET", "/v1/status", cookie=f"{other}; {cookie}", herald_console=secret)[0] == 200


def partial(service, token, body):
    """A request for a token, whose body has not come yet."""
    connection = socket.create_connection(("127.0.0.1", service.listeners["console"]), timeout=PATIENCE)
    connection.sendall(
        b"POST /v1/tokens HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
        + f"authorization: Bearer {token}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body[:1]
    )
    return connection


def answered(connection):
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_what_a_token_began_ends_with_it(fresh):
    service = fresh("--catch", "all").start()
    token = make_token(service, "thief", "admin")
    link = ask(service, "POST", "/v1/links", token=token, body={"role": "admin"})[2]["code"]
    session = signed_in(service, code=ask(service, "POST", "/v1/links", token=token, body={"role": "admin"})[2]["code"])
    child = ask(service, "POST", "/v1/tokens", token=token, body={"name": "child", "role": "admin"})[2]["token"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(ask, service, "GET", "/v1/caught?wait=60", token=token)
        body = b'{"name":"late","role":"admin"}'
        late = partial(service, token, body)
        herald("console", "revoke", "--data", service.data, "thief")
        late.sendall(body[1:])
        # Whether they were let in before the revocation or not: neither gets what it asked for.
        assert answered(late).startswith(b"HTTP/1.1 401 ")
        assert waiting.result(timeout=PATIENCE)[0] == 401
    assert ask(service, "POST", "/v1/session", body={"code": link})[0] == 401
    assert page(service, "GET", "/v1/session", session)[0] == 401
    assert ask(service, "GET", "/v1/session", token=child)[0] == 401
    assert json.loads(herald("console", "tokens", "--data", service.data, "--json").stdout) == []


def test_a_viewers_flood_erases_nothing(service, tokens):
    assert page(service, "POST", "/v1/trust/reload", sign_in(service, "--name", "Witness"), body={})[0] == 200
    for _ in range(300):
        assert ask(service, "POST", "/v1/clock/advance", token=tokens["viewer"], body={})[0] == 403
    items = ask(service, "GET", "/v1/audit?limit=1000", token=tokens["admin"])[2]["items"]
    mine = [line for line in items if (line.get("who"), line["action"]) == ("test-viewer", "POST /v1/clock/advance")]
    assert len(mine) <= 7 and sum(1 + line.get("more", 0) for line in mine) >= 300
    assert [line["status"] for line in items if line.get("who") == "Witness"] == [200]
    audit = service.data / "audit"
    assert "test-viewer" not in (audit / "audit.jsonl").read_text() or '"status":403' not in (audit / "audit.jsonl").read_text()
    assert stat.S_IMODE((audit / "refused.jsonl").stat().st_mode) == 0o600


def test_a_broken_chunk_is_a_bad_request(service, tokens):
    for body in (b"zz\r\n", b"5\r\nab", b"fffffffffffffffff\r\n", b"2\r\n{}x\r\n"):
        with socket.create_connection(("127.0.0.1", service.listeners["console"]), timeout=PATIENCE) as connection:
            connection.sendall(
                b"POST /v1/drills HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n"
                + f"authorization: Bearer {tokens['admin']}\r\n\r\n".encode() + body
            )
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(4096).startswith(b"HTTP/1.1 400 "), body
    assert not [line for line in service.lines if "a request failed" in line]


def test_a_page_behind_tls_gets_a_secure_cookie(service):
    port = service.listeners["console"]
    _, headers, _ = ask(
        service, "POST", "/v1/session", body={"code": code(service)}, origin=f"https://localhost:{port}", host=f"localhost:{port}"
    )
    assert headers["set-cookie"].startswith(f"__Host-herald-{port}=") and "; Secure;" in headers["set-cookie"]


def test_what_a_foreign_site_sends_is_refused(service, tokens):
    session = cookie, secret = sign_in(service)
    ours = origin(service)
    drill = {"kind": "drop", "for": "60s"}
    changes = {"method": "POST", "path": "/v1/drills", "cookie": cookie, "herald_console": secret, "body": drill}
    for expected, fields in [
        (403, {"origin": "http://attacker.example"}),
        (403, {"origin": "null"}),
        (403, {"origin": ours + "0"}),
        (403, {"sec_fetch_site": "cross-site"}),
        (403, {"sec_fetch_site": "same-site"}),
        (403, {}),
        (401, {"origin": ours, "herald_console": "0"}),
        (415, {"origin": ours, "kind": "text/plain"}),
        (415, {"origin": ours, "kind": "application/x-www-form-urlencoded", "body": "kind=drop"}),
        (421, {"origin": "http://attacker.example", "host": "attacker.example"}),
    ]:
        wanted = {**changes, **fields}
        status, _, answer = ask(service, wanted.pop("method"), wanted.pop("path"), **wanted)
        assert status == expected, (fields, answer)
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert ask(service, "POST", "/v1/session", body={"code": "x"}, kind=kind)[0] == 415
    assert ask(service, "POST", "/v1/session", body={"code": "x"}, origin="http://attacker.example")[0] == 403
    assert page(service, "GET", "/v1/drills", session)[2] == []
    # A token needs no page, and a page of ours no origin if the browser says so.
    drills = [
        ask(service, "POST", "/v1/drills", token=tokens["admin"], body=drill),
        ask(service, "POST", "/v1/drills", cookie=cookie, herald_console=secret, sec_fetch_site="same-origin", body=drill),
    ]
    assert [status for status, _, _ in drills] == [200, 200], drills
    assert page(service, "POST", "/v1/drills/stop", session, body={})[0] == 200


def test_tokens_are_made_listed_and_revoked_without_a_service(fresh):
    service = fresh()
    tool = lambda *words: herald("console", *words, "--data", service.data, "--json")
    herald("init", "--data", service.data)
    token = json.loads(tool("token", "--name", "ci", "--role", "sender").stdout)
    assert [entry["id"] for entry in json.loads(tool("tokens").stdout)] == [token["id"]]
    assert "there is a token named ci" in herald("console", "token", "--name", "ci", "--data", service.data, check=False).stderr
    service.start()
    assert ask(service, "GET", "/v1/caught", token=token["token"])[0] == 200
    service.stop()
    assert json.loads(tool("revoke", "ci").stdout)["id"] == token["id"]
    service.start()
    assert ask(service, "GET", "/v1/caught", token=token["token"])[0] == 401


def test_guesses_are_slowed_down_for_their_network_alone(service, tokens):
    cookie, secret = sign_in(service)
    statuses = []
    # Each six seconds another one is let in, and the machine may take as long for each.
    while len(statuses) < 11 or statuses[-1] != 429:
        assert len(statuses) < 60
        statuses.append(ask(service, "GET", "/v1/status", token="wrong", source="127.9.9.9")[0])
    assert set(statuses[:-1]) == {401}
    status, headers, answer = ask(service, "POST", "/v1/session", body={"code": "x"}, source="127.9.9.8")
    assert status in (401, 429)
    if status == 429:
        assert f"try again in {headers['retry-after']} s" in answer["error"]
    # A right one passes, so that nobody shuts out a neighbour.
    assert ask(service, "GET", "/v1/status", token=tokens["viewer"], source="127.9.9.9")[0] == 200
    assert ask(service, "GET", "/v1/status", cookie=cookie, herald_console=secret, source="127.9.9.9")[0] == 200
    assert ask(service, "GET", "/v1/status", token=tokens["viewer"])[0] == 200


def test_sessions_are_listed_and_ended(service, tokens):
    cookie = sign_in(service, "--name", "Grace")
    items = ask(service, "GET", "/v1/sessions", token=tokens["admin"])[2]["items"]
    (entry,) = [entry for entry in items if entry["name"] == "Grace"]
    assert (entry["role"], entry["address"]) == ("admin", "127.0.0.1")
    assert ask(service, "DELETE", f"/v1/sessions/{entry['id']}", token=tokens["admin"])[0] == 204
    assert ask(service, "DELETE", f"/v1/sessions/{entry['id']}", token=tokens["admin"])[0] == 404
    assert page(service, "GET", "/v1/session", cookie)[0] == 401


def test_a_token_is_shown_once_and_its_hash_lasts(fresh):
    service = fresh().start()
    token = make_token(service, "grafana", "viewer")
    path = service.data / "trust" / "console.tokens"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and token not in path.read_text()
    assert "another name" in one_line(herald("console", "token", "--data", service.data, "--name", "grafana", check=False))
    assert ask(service, "POST", "/v1/session", body={"token": token})[0] == 201
    assert service.stop() == 0
    service.start()
    assert ask(service, "GET", "/v1/session", token=token)[2]["name"] == "grafana"
    session = signed_in(service, token=token)
    assert "grafana" in herald("console", "tokens", "--data", service.data).stdout
    assert herald("console", "revoke", "--data", service.data, "grafana").stdout == "revoked grafana\n"
    assert ask(service, "GET", "/v1/session", token=token)[0] == 401
    assert page(service, "GET", "/v1/session", session)[0] == 401
    assert "no token has this name" in one_line(herald("console", "revoke", "--data", service.data, "grafana", check=False))
    service.stop()
    for damage in ("", "{}", "nonsense"):
        path.write_text(damage)
        words = one_line(herald("serve", "--data", service.data, check=False))
        assert "console.tokens is damaged" in words and "herald console token" in words
        assert path.read_text() == damage
        assert "console.tokens is damaged" in herald("doctor", "--data", service.data, check=False).stdout


def test_the_audit_has_every_change_and_no_secret(service, tokens):
    cookie = sign_in(service, "--name", "Ada")
    page(service, "POST", "/v1/credentials/none/revoke", cookie, body={})
    ask(service, "POST", "/v1/trust/reload", token=tokens["viewer"])
    ask(service, "POST", "/v1/session", body={"code": "guess"}, source="127.0.0.8")
    herald("clock", "accept", "--data", service.data)
    items = ask(service, "GET", "/v1/audit?limit=5", token=tokens["admin"])[2]["items"]
    found = [(line.get("who"), line.get("role"), line["from"], line["action"], line.get("target"), line["status"]) for line in items]
    uid = found[0][0]
    assert re.fullmatch(r"uid \d+", uid)
    assert found == [
        (uid, "admin", "socket", "POST /v1/clock/accept", None, 200),
        (None, None, "127.0.0.8", "POST /v1/session", None, 401),
        ("test-viewer", "viewer", "127.0.0.1", "POST /v1/trust/reload", None, 403),
        ("Ada", "admin", "127.0.0.1", "POST /v1/credentials/{id}/revoke", "none", 404),
        (None, None, "127.0.0.1", "POST /v1/session", "admin Ada", 201),
    ]
    path = service.data / "audit" / "audit.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    secrets = [*tokens.values(), cookie[0].partition("=")[2], cookie[1], (service.data / "run/admin.token").read_text().strip(), "guess"]
    assert [secret for secret in secrets if secret in text] == []
    older = ask(service, "GET", f"/v1/audit?limit=2&before={items[-1]['id']}", token=tokens["admin"])[2]
    assert [line["id"] for line in older["items"]] == [items[-1]["id"] - 1, items[-1]["id"] - 2]
    assert ask(service, "GET", "/v1/audit?limit=0", token=tokens["admin"])[0] == 400


def test_the_audit_has_the_first_look_at_payloads(service, tokens):
    for _ in range(2):
        assert ask(service, "GET", "/v1/caught", token=tokens["sender"])[0] == 200
    items = ask(service, "GET", "/v1/audit?limit=1000", token=tokens["admin"])[2]["items"]
    assert [line["action"] for line in items if line["action"] == "GET /v1/caught" and line.get("who") == "test-sender"] == ["GET /v1/caught"]


def test_a_read_only_console_changes_nothing(fresh):
    service = fresh("--console-mode", "read-only").start()
    cookie = sign_in(service)
    assert page(service, "GET", "/v1/session", cookie)[2]["mode"] == "read-only"
    status, _, answer = page(service, "POST", "/v1/trust/reload", cookie, body={})
    assert status == 403 and "console-mode" in answer["error"]
    herald("clock", "accept", "--data", service.data)
    assert page(service, "DELETE", "/v1/session", cookie)[0] == 204


def test_senders_drill_only_where_the_operator_lets_them(fresh, service, tokens):
    drill = {"kind": "drop", "for": "60s"}
    open_to_senders = fresh("--console-drills").start()
    mine = {role: make_token(open_to_senders, f"test-{role}", role) for role in ROLES}
    for here, token, allowed in ((service, tokens, ["admin"]), (open_to_senders, mine, ["sender", "admin"])):
        for role in ROLES:
            status, _, session = ask(here, "GET", "/v1/session", token=token[role])
            assert (status, session["drills"]) == (200, allowed[0])
            status, _, started = ask(here, "POST", "/v1/drills", token=token[role], body=drill)
            assert status == (200 if role in allowed else 403), started
            id = started["id"] if role in allowed else 1
            for path in (f"/v1/drills/{id}/stop", "/v1/drills/stop"):
                assert ask(here, "POST", path, token=token[role], body={})[0] == status
    # Nothing else came with it.
    assert ask(open_to_senders, "POST", "/v1/clock/accept", token=mine["sender"], body={})[0] == 403
    items = ask(open_to_senders, "GET", "/v1/audit", token=mine["admin"])[2]["items"]
    assert ("test-sender", "POST /v1/drills", 200) in [(line.get("who"), line["action"], line["status"]) for line in items]


def test_an_api_only_console_has_no_page(fresh):
    service = fresh("--console-mode", "api-only").start()
    assert ask(service, "GET", "/")[0] == 404
    assert ask(service, "GET", "/health")[0] == 200


def test_a_console_that_is_off_leaves_the_commands(fresh):
    service = fresh("--console-mode", "off").start()
    assert "console" not in service.listeners
    assert re.search("^console +off$", herald("status", "--data", service.data).stdout, re.M)
    assert "console-mode" in one_line(herald("console", "--data", service.data, check=False))
