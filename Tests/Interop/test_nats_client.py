"""Herald's client of NATS against the real server, with nats-py as the other end."""

import asyncio
import contextlib
import ipaddress
import os
import signal

import nats
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from nats_client import NATSClient
from nats_keys import ACCOUNT, OPERATOR, USER, Key, creds
from nats_servers import NATSServer, free_addresses

from certificates import Authority
from service import PATIENCE, eventually


@pytest.fixture
def server(tmp_path):
    """One server, started."""
    server = NATSServer("n1", tmp_path / "n1").start().wait()
    yield server
    server.kill()


@pytest.fixture
def client(server):
    with NATSClient(server.url) as client:
        client.connected()
        yield client


@contextlib.contextmanager
def server_with(folder, extra, name="n1", address=None):
    """A server with this in its configuration."""
    server = NATSServer(name, folder / name, address, extra=extra).start()
    try:
        yield server.wait()
    finally:
        server.kill()


def with_nats_py(url, body):
    """Runs a coroutine with a connection of nats-py."""

    async def run():
        connection = await nats.connect(url)
        try:
            return await body(connection)
        finally:
            await connection.close()

    return asyncio.run(asyncio.wait_for(run(), PATIENCE))


def test_what_one_client_sends_the_other_reads_byte_for_byte(server, client):
    payloads = [b"", b"\r\n", bytes(range(256)), b"MSG a 1 5\r\n" * 50_000]
    headers = [["A", "b"], ["a", "B  c"], ["A", "second"], ["Ünicode".encode("ascii", "ignore").decode(), "wert ü"]]

    async def other(connection):
        inbox = await connection.subscribe("to.python")
        await connection.flush()
        for payload in payloads:
            client.done("publish", payload, subject="to.python", headers=headers, reply="some.where")
            message = await inbox.next_msg(PATIENCE)
            assert (message.data, message.reply, message.subject) == (payload, "some.where", "to.python")
            assert message.headers["a"] == "B  c"
            assert "wert ü" in message.headers.values()
        number = client.send("subscribe", subject="to.swift.*")
        assert client.answer(number)["outcome"] == "done"
        # The subscription is sent before the next request is.
        assert client.ask("request", subject="nobody.there")["kind"] == "noResponders"
        for payload in payloads:
            await connection.publish("to.swift.x", payload, reply="back", headers={"K": "v: w", "Empty": ""})
            message = await asyncio.to_thread(client.message, number)
            assert (message["payload"], message["reply"], message["subject"]) == (payload, "back", "to.swift.x")
            assert message["headers"] == [["K", "v: w"], ["Empty", ""]]

        async def echo(message):
            await message.respond(message.data + b"!")

        await connection.subscribe("echo", cb=echo)
        await connection.flush()
        answer = await asyncio.to_thread(client.ask, "request", b"hello", subject="echo")
        assert answer["message"]["payload"] == b"hello!"

    with_nats_py(server.url, other)


def test_a_publish_has_four_outcomes(server, client):
    info = client.create("S", ["s.>"], max_msgs_per_subject=1, first_seq=1000, allow_msg_ttl=True)
    assert (info["first"], info["last"], info["configuration"]["max_msgs_per_subject"]) == (1000, 999, 1)
    first = client.store("s.a", b"one", sequence=0)
    assert first == 1000
    wrong = client.ask("store", subject="s.a", sequence=0)
    assert (wrong["outcome"], wrong["code"], wrong["sequence"]) == ("refused", 10071, first)
    second = client.store("s.a", b"two", sequence=first, ttl=99.5, headers=[["Own", "field"]])
    message = client.ask("bounded", stream="S", subjects=["s.a"])["messages"][0]
    assert message["payload"] == b"two"
    assert ["Own", "field"] in message["headers"] and ["Nats-TTL", "100"] in message["headers"]
    nobody = client.ask("store", subject="elsewhere")
    assert (nobody["outcome"], nobody["kind"]) == ("notSent", "noResponders")
    large = client.ask("store", bytes((1 << 20) + 1), subject="s.a")
    assert (large["outcome"], large["kind"]) == ("notSent", "tooLarge")
    assert client.store("s.a", bytes(1 << 20)) == second + 1
    assert client.ask("store", subject="s.a b")["kind"] == "badMessage"
    server.pause()
    silent = client.ask("store", subject="s.b", within=0.2)
    assert (silent["outcome"], silent["kind"]) == ("unknown", "timeout")
    server.resume()
    # The connection may have been given up meanwhile; what was written is stored nevertheless.
    found = eventually(lambda: client.ask("bounded", stream="S", subjects=["s.b"]).get("messages"))
    assert found[0]["subject"] == "s.b"
    server.kill()
    eventually(lambda: client.ask("store", subject="s.a").get("kind") == "notConnected", what="the end of the connection")


def test_streams_are_made_and_deleted_and_errors_have_codes(client):
    info = client.create("S", ["s.>"], deny_delete=True, metadata={"ownerName": "x"})
    assert info["configuration"]["metadata"]["ownerName"] == "x"
    # The same again is not an error; another one of the name is.
    assert client.create("S", ["s.>"], deny_delete=True, metadata={"ownerName": "x"})["created"] == info["created"]
    assert client.ask("create", configuration={"name": "S", "subjects": ["t"]})["code"] == 10058
    client.store("s.t")
    assert client.done("info", stream="S")["info"]["messages"] == 1
    client.done("delete", stream="S")
    assert client.ask("info", stream="S")["code"] == 10059
    assert client.ask("info", stream="a.b")["kind"] == "badMessage"
    assert client.ask("bounded", stream="S", subjects=["s.>"])["kind"] == "noResponders"


def test_a_bounded_read_is_whole_or_says_why_not(client):
    client.create("S", ["s.>"], max_msgs_per_subject=1)
    # A publisher may choose the names that the server gives its own fields.
    sequences = [client.store(f"s.{n}", b"x", headers=[["Nats-Sequence", "999"]]) for n in range(10)]
    subjects = [f"s.{n}" for n in (9, 3, 5)] + ["s.none"]
    answer = client.ask("bounded", stream="S", subjects=subjects, sequence=sequences[-1])
    assert (answer["outcome"], answer["sequence"]) == ("complete", sequences[-1])
    assert [message["subject"] for message in answer["messages"]] == ["s.3", "s.5", "s.9"]
    assert [message["sequence"] for message in answer["messages"]] == [sequences[n] for n in (3, 5, 9)]
    assert client.ask("bounded", stream="S", subjects=subjects, sequence=sequences[-1] + 1)["outcome"] == "behind"
    assert client.ask("bounded", stream="S", subjects=["s.none"], sequence=1)["outcome"] == "nothing"
    for number in range(1100):
        client.send("store", subject=f"s.many.{number}")
    client.store("s.last")
    many = client.ask("bounded", stream="S", subjects=["s.many.>"], sequence=0)
    assert (many["outcome"], many["reason"]) == ("refused", "Too Many Results")


@pytest.fixture
def tls(tmp_path):
    """An address, and a server's configuration that verifies clients, with the options of a client that it accepts."""
    authority = Authority.foreign("somebody's authority")
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    address = free_addresses(1)[0]
    # The certificate names the host and not the address.
    server = authority.issue(
        tmp_path / "server.pem", subject="nats", names=[x509.DNSName("nats.example")],
        usages=[ExtendedKeyUsageOID.SERVER_AUTH],
    )
    client = authority.issue(tmp_path / "client.pem", subject="herald")
    extra = f'tls {{ cert_file: "{server}", key_file: "{server}", ca_file: "{ca}", verify: true, handshake_first: FIRST }}'
    return address, extra, {"ca": ca, "certificate": client, "key": client, "server_name": "nats.example"}


@pytest.mark.parametrize("first", [False, True], ids=["after INFO", "handshake first"])
def test_tls_verifies_both_ends(tmp_path, tls, first):
    address, extra, options = tls
    if first:
        options |= {"tls_first": True}
    with server_with(tmp_path, extra.replace("FIRST", str(first).lower()), address=address) as server:
        with NATSClient(server.url, **options) as client:
            assert client.connected() == "n1"
            client.create("S", ["s.>"])
            assert client.store("s.a", bytes(100_000)) == 1
        without = {name: value for name, value in options.items() if name not in ("certificate", "key")}
        other = tmp_path / "other.pem"
        other.write_bytes(Authority.foreign("another").certificate.public_bytes(serialization.Encoding.PEM))
        for wrong in (without, options | {"ca": other}, options | {"server_name": "other.example"}):
            with NATSClient(server.url, **wrong) as client:
                client.refused("tls", "connectionLost")


def test_a_numeric_address_is_compared_with_the_certificate(tmp_path, tls):
    address, _, options = tls
    authority = Authority.foreign("third")
    (tmp_path / "third.pem").write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    certificate = authority.issue(
        tmp_path / "third-server.pem", names=[x509.IPAddress(ipaddress.ip_address(address))],
        usages=[ExtendedKeyUsageOID.SERVER_AUTH],
    )
    extra = f'tls {{ cert_file: "{certificate}", key_file: "{certificate}" }}'
    with server_with(tmp_path, extra, address=address) as server:
        with NATSClient(server.url.replace("nats:", "tls:"), ca=tmp_path / "third.pem") as client:
            client.connected()


def test_password_token_and_nkey_are_accepted_and_wrong_ones_named(tmp_path):
    key, stranger = Key(USER), Key(USER)
    seeds = []
    for name, each in (("key", key), ("stranger", stranger)):
        seeds.append(tmp_path / f"{name}.nk")
        seeds[-1].write_text(f"{each.seed}\n")
    users = f'authorization {{ users: [ {{ user: "a", password: "b:c" }}, {{ nkey: "{key.public}" }} ] }}'
    for extra, right, wrong in (
        (users, {"user": "a:b:c"}, {"user": "a:x"}),
        (users, {"nkey": seeds[0]}, {"nkey": seeds[1]}),
        ('authorization { token: "s3cret" }', {"token": "s3cret"}, {"token": "other"}),
    ):
        with server_with(tmp_path, extra) as server:
            with NATSClient(server.url, **right) as client:
                client.connected()
            for options in (wrong, {}):
                with NATSClient(server.url, **options) as client:
                    client.refused("authorization")


def test_a_credentials_file_is_accepted(tmp_path):
    operator, system, account, user = Key(OPERATOR), Key(ACCOUNT), Key(ACCOUNT), Key(USER)
    limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
    token = operator.jwt(operator.public, "O", "operator", system_account=system.public)
    accounts = {each.public: operator.jwt(each.public, name, "account", limits=limits) for each, name in ((system, "SYS"), (account, "A"))}
    preload = ", ".join(f"{name}: {jwt}" for name, jwt in accounts.items())
    extra = f"operator: {token}\nresolver: MEMORY\nresolver_preload: {{ {preload} }}\n"
    file = tmp_path / "user.creds"
    jwt = account.jwt(user.public, "herald", "user", subs=-1, data=-1, payload=-1)
    with server_with(tmp_path, extra) as server:
        file.write_text(creds(jwt, user.seed))
        with NATSClient(server.url, creds=file) as client:
            client.connected()
            number = client.send("subscribe", subject="a")
            client.done("publish", b"x", subject="a")
            assert client.message(number)["payload"] == b"x"
        file.write_text(creds(jwt, Key(USER).seed))
        with NATSClient(server.url, creds=file) as client:
            client.refused("authorization")


def test_a_slow_server_is_an_error_and_no_memory(server):
    with NATSClient(server.url, pending_bytes=4 << 20, requests=1000) as client:
        client.connected()
        client.create("S", ["s"], max_msgs=10)
        kinds = set()
        # Again, if the machine pauses for the seconds after which the connection is given up.
        for _ in range(5):
            if ("notSent", "busy") in kinds:
                break
            server.pause()
            numbers = [client.send("store", bytes(64 << 10), subject="s", within=1) for _ in range(400)]
            answers = [client.answer(number) for number in numbers]
            kinds = {(answer["outcome"], answer.get("kind")) for answer in answers}
            statistics = client.ask("statistics")["statistics"]
            server.resume()
            eventually(lambda: client.ask("store", subject="s")["outcome"] == "stored")
        # Messages in the sockets are unknown; the others were refused at once, or were not sent when the connection ended.
        assert ("notSent", "busy") in kinds
        assert {outcome for outcome, _ in kinds} == {"unknown", "notSent"}
        assert statistics["refusedBusy"] > 0


def test_a_consumer_that_the_server_cuts_off_as_slow_gets_every_message_once(tmp_path):
    # The server must not give the stopped client up for its silence.
    with server_with(tmp_path, 'max_pending: 4MiB\nping_interval: "10m"') as server:
        with NATSClient(server.url) as client, NATSClient(server.url) as publisher:
            client.connected()
            publisher.connected()
            publisher.create("S", ["s.>"])
            number = client.send("follow", stream="S", subjects=["s.>"])
            assert client.heard(number)["event"] == "caughtUp"
            # The server would wait for the consumer, which says how far it is, but not for a subscription.
            client.done("subscribe", subject="flood")
            # The answer shows that the subscription, which was sent before, has reached the server.
            client.done("info", stream="S")
            # It reads nothing for a while: the server's buffer, and those of the sockets, are full.
            os.kill(client.process.pid, signal.SIGSTOP)
            for n in range(1, 101):
                assert publisher.store(f"s.{n}") == n
                for _ in range(4):
                    publisher.done("publish", bytes(64 << 10), subject="flood")

            def is_cut_off():
                # The buffers of the sockets may be large.
                for _ in range(32):
                    publisher.done("publish", bytes(64 << 10), subject="flood")
                return server.ask("varz")["slow_consumers"] > 0

            eventually(is_cut_off)
            os.kill(client.process.pid, signal.SIGCONT)
            assert client.event("disconnected")
            assert [client.message(number)["sequence"] for _ in range(100)] == list(range(1, 101))


def test_a_server_in_lame_duck_mode_is_left_for_another_one(tmp_path):
    addresses = free_addresses(2)
    with server_with(tmp_path, "", "n1", addresses[0]) as one, server_with(tmp_path, "", "n2", addresses[1]) as two:
        with NATSClient(one.url, two.url) as client:
            servers = {"n1": one, "n2": two}
            first = client.connected()
            number = client.send("subscribe", subject="a")
            servers[first].lame_duck()
            assert client.event("lameDuck")
            second = client.connected()
            assert {first, second} == {"n1", "n2"}
            # Subscriptions come along.
            client.done("publish", b"x", subject="a")
            assert client.message(number)["payload"] == b"x"
