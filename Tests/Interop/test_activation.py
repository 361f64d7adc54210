"""Activation of devices: Enrollment over Secure Transport, by curl and openssl."""

import base64
import concurrent.futures
import contextlib
import json
import os
import re
import socket
import sqlite3
import ssl
import subprocess
import time
import urllib.request

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

import est_client as est
import mqtt_packets as mqtt
import mqtt_wire
from certificates import Authority
from est_client import Unanswered, curl, device_id, enroll, identity, invite, key_and_request, renew
from mqtt_packets import Kind
from parties import advance
from refusals import refused, told
from service import PATIENCE, eventually, herald, once_within


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with an adjustable clock, so that a rate-limited test can go on."""
    from service import Service

    service = Service(tmp_path_factory.mktemp("activation") / "data", "--clock", "adjustable").start()
    yield service
    service.close()


@pytest.fixture(autouse=True)
def no_wrong_codes(request):
    """Each test begins with no wrong code on its account."""
    if "service" in request.fixturenames:
        advance(request.getfixturevalue("service"), 70)


def connects(service, pem, identifier):
    """Whether the device listener accepts this certificate."""
    try:
        wire = mqtt_wire.Wire(service.listeners["device"], mqtt_wire.tls_context(service.ca, pem))
    except (ssl.SSLError, ConnectionError):
        return False
    with wire:
        wire.send(mqtt.connect(identifier))
        try:
            found = wire.read()
        except mqtt_wire.Closed:
            return False
        return found.kind == Kind.CONNACK and found.reason == 0


def counted(service):
    """The service's activations so far, by (operation, result)."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/metrics", timeout=PATIENCE).read().decode()
    found = re.findall(r'^herald_activations_total\{operation="(\w+)",result="(\w+)"\} (\d+)', text, re.M)
    return {(operation, result): int(count) for operation, result, count in found}


def devices(service):
    return {one["id"]: one for one in json.loads(herald("device", "list", "--data", service.data, "--json").stdout)}


def invitations(service):
    listed = herald("device", "invitations", "--data", service.data, "--json").stdout
    return {one["id"]: one for one in json.loads(listed)}


@pytest.fixture
def activated(service, tmp_path):
    """(file with certificate and key, identifier) of a device that was activated."""
    key, request = key_and_request(tmp_path)
    answer = enroll(service, invite(service)["code"], request)
    assert answer.status == 200, answer.words
    return identity(tmp_path, key, answer), device_id(answer.certificates[0])


class TestAuthorities:
    def test_the_authorities_are_served_to_everybody(self, service):
        answer = curl(service, "est/cacerts")
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/pkcs7-mime"
        assert answer.headers["content-transfer-encoding"] == "base64"
        wanted = {
            x509.load_pem_x509_certificate(service.ca.read_bytes()), Authority.of_service(service, "device").certificate
        }
        assert set(answer.certificates) == wanted

    def test_they_are_given_without_reading_a_file(self, service):
        given = curl(service, "est/cacerts")
        away = service.ca.rename(service.ca.with_suffix(".away"))
        try:
            url = f"https://localhost:{service.listeners['activation']}/.well-known/est/cacerts"
            command = ["curl", "-sS", "--max-time", "50", "--cacert", str(away), url]
            assert subprocess.run(command, capture_output=True, check=True).stdout == given.body
        finally:
            away.rename(service.ca)

    def test_no_attributes_are_required_of_a_request(self, service):
        answer = curl(service, "est/csrattrs")
        assert (answer.status, answer.body) == (204, b"")

    def test_the_response_names_the_device_listener(self, service):
        answer = curl(service, "herald")
        assert answer.status == 200 and answer.headers["content-type"] == "application/json"
        told = json.loads(answer.body)
        assert told["device"] == {"port": service.listeners["device"]} and told["announcement"].count(".") == 2

    def test_the_handshake_shows_the_authority_named_in_codes(self, service):
        shown = subprocess.run(
            ["openssl", "s_client", "-connect", f"localhost:{service.listeners['activation']}", "-showcerts"],
            input=b"", capture_output=True,
        ).stdout
        certificates = x509.load_pem_x509_certificates(shown)
        assert certificates[-1] == x509.load_pem_x509_certificate(service.ca.read_bytes())

    @pytest.mark.parametrize("path", ["est/nothing", "est/simpleenroll", "est/serverkeygen", "", "est/../../v1/devices"])
    def test_other_paths_are_not_found(self, service, path):
        assert curl(service, path, "--path-as-is").status == 404


class TestEnrollment:
    @pytest.mark.parametrize(
        "options",
        [
            ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"),
            ("-newkey", "rsa:2048"),
        ],
        ids=["P-256", "P-384", "RSA"],
    )
    def test_a_code_yields_a_device_certificate(self, service, tmp_path, options):
        key, request = key_and_request(tmp_path, *options)
        answer = enroll(service, invite(service)["code"], request)
        assert answer.status == 200, answer.words
        assert answer.headers["content-type"] == "application/pkcs7-mime; smime-type=certs-only"
        assert answer.headers["content-transfer-encoding"] == "base64"
        (certificate,) = answer.certificates
        Authority.of_service(service, "device").certificate.public_key()
        certificate.verify_directly_issued_by(Authority.of_service(service, "device").certificate)
        assert certificate.public_key() == x509.load_der_x509_csr(base64.b64decode(request)).public_key()
        assert connects(service, identity(tmp_path, key, answer), device_id(certificate))
        assert devices(service)[device_id(certificate)]["name"] == "lamp"

    def test_a_user_name_does_not_matter(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        assert enroll(service, invite(service)["code"], request, user="anybody").status == 200

    def test_a_code_ignores_case_and_separators(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        code = invite(service)["code"].lower().replace("-", " ")
        assert enroll(service, code, request).status == 200

    @pytest.mark.parametrize("form", ["PEM", "DER", "one line"])
    def test_requests_in_other_encodings_are_accepted(self, service, tmp_path, form):
        _, request = key_and_request(tmp_path)
        der = base64.b64decode(request)
        pem = x509.load_der_x509_csr(der).public_bytes(Encoding.PEM)
        body = {"PEM": pem, "DER": der, "one line": base64.b64encode(der)}[form]
        assert enroll(service, invite(service)["code"], body).status == 200

    def test_the_name_comes_from_the_invitation(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        answer = enroll(service, invite(service, "--name", "Hall")["code"], request)
        assert devices(service)[device_id(answer.certificates[0])]["name"] == "Hall"

    def test_the_lifetime_is_a_setting(self, fresh, tmp_path):
        service = fresh("--device-certificate-days", "30").start()
        _, request = key_and_request(tmp_path)
        (certificate,) = enroll(service, invite(service)["code"], request).certificates
        life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
        assert 30 * 86_400 <= life.total_seconds() <= 30 * 86_400 + 7200


class TestCodes:
    def refused(self, answer, words):
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
        assert answer.headers["content-type"].startswith("text/plain")
        assert words in answer.words

    def test_without_a_code_there_is_a_challenge(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        self.refused(est.post(service, "simpleenroll", request), "invitation code")

    def test_a_code_works_once(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        one = invite(service)
        answer = enroll(service, one["code"], request)
        assert answer.status == 200
        _, other = key_and_request(tmp_path, stem="other")
        self.refused(enroll(service, one["code"], other), "used")
        used = invitations(service)[one["id"]]
        assert used["used"] == 1 and used["device"] == device_id(answer.certificates[0])

    def test_the_same_key_gets_the_same_certificate_until_the_device_has_connected(self, service, tmp_path):
        key, request = key_and_request(tmp_path)
        one, before = invite(service, "--valid", "1h"), len(devices(service))
        answer = enroll(service, one["code"], request)
        advance(service, 3601)
        assert enroll(service, one["code"], request).certificates == answer.certificates
        assert len(devices(service)) == before + 1 and invitations(service)[one["id"]]["used"] == 1
        unused = ("device", "list", "--unused", "--json", "--data", service.data)
        name = device_id(answer.certificates[0])
        assert name in {device["id"] for device in json.loads(herald(*unused).stdout)}
        assert connects(service, identity(tmp_path, key, answer), name)
        eventually(lambda: name not in {device["id"] for device in json.loads(herald(*unused).stdout)})
        self.refused(enroll(service, one["code"], request), "used")

    def test_concurrent_uses_of_a_code_make_one_device(self, service, tmp_path):
        requests = [key_and_request(tmp_path, stem=f"device-{number}")[1] for number in range(12)]
        code, before = invite(service)["code"], len(devices(service))
        with concurrent.futures.ThreadPoolExecutor(12) as crowd:
            answers = list(crowd.map(lambda request: enroll(service, code, request).status, requests))
        assert answers.count(200) == 1 and set(answers) <= {200, 401, 429}
        assert len(devices(service)) == before + 1

    def test_an_expired_code_is_refused(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        one = invite(service, "--valid", "1h")
        advance(service, 3601)
        self.refused(enroll(service, one["code"], request), "expired")
        listed = herald("device", "invitations", "--data", service.data).stdout
        assert any(one["id"] in line and "expired" in line for line in listed.splitlines())

    def test_a_withdrawn_code_is_refused(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        one = invite(service)
        herald("device", "withdraw", "--data", service.data, one["id"])
        self.refused(enroll(service, one["code"], request), "withdrawn")
        assert herald("device", "withdraw", "--data", service.data, one["id"], check=False).returncode == 1
        assert herald("device", "withdraw", "--data", service.data, "nobody", check=False).returncode == 1

    def test_a_code_of_another_service_is_refused(self, service, fresh, tmp_path):
        _, request = key_and_request(tmp_path)
        stranger = fresh()
        herald("init", "--data", stranger.data)
        self.refused(enroll(service, invite(stranger)["code"], request), "did not issue this invitation code")

    def test_a_mistyped_code_is_distinguished_from_a_wrong_one(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        code = invite(service)["code"]
        wrong = code[:-1] + ("0" if code[-1] != "0" else "1")
        self.refused(enroll(service, wrong, request), "this is not an invitation code")
        assert enroll(service, code, request).status == 200

    def test_wrong_codes_are_rate_limited(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        # Another wrong code is allowed every twelve seconds: again, if the machine takes that long.
        for _ in range(5):
            begin, code = time.monotonic(), invite(service)["code"]
            for _ in range(5):
                assert enroll(service, "WRONG", request).status == 401
            before = counted(service)
            answer = enroll(service, code, request)
            if answer.status == 429 or time.monotonic() - begin < 11:
                break
            advance(service, 70)
        assert answer.status == 429 and 1 <= int(answer.headers["retry-after"]) <= 12
        advance(service, 13)
        assert enroll(service, code, request).status == 200
        assert enroll(service, code, key_and_request(tmp_path, stem="other")[1]).status == 401
        now = counted(service)
        added = {result: now["enroll", result] - before["enroll", result] for result in ("done", "refused", "limited", "failed")}
        assert added == {"done": 1, "refused": 1, "limited": 1, "failed": 0}

    def test_codes_are_never_logged_or_written_to_disk(self, fresh, tmp_path):
        service = fresh("--log-level", "trace").start()
        _, request = key_and_request(tmp_path)
        codes = [invite(service)["code"] for _ in range(3)]
        assert enroll(service, codes[0], request).status == 200
        assert enroll(service, codes[0], key_and_request(tmp_path, stem="other")[1]).status == 401
        assert enroll(service, codes[1], b"garbage").status == 400
        service.stop()
        kept = b"\n".join(path.read_bytes() for path in service.data.rglob("*") if path.is_file())
        for code in codes:
            for part in (code, code.replace("-", ""), code[-17:]):
                assert part not in "\n".join(service.lines) and part.encode() not in kept
                assert base64.b64encode(b":" + code.encode()).decode() not in "\n".join(service.lines)

    def test_several_codes_are_made_at_once_without_a_service(self, fresh, tmp_path):
        service = fresh()
        herald("init", "--data", service.data)
        made = invite(service, "--count", "3")
        assert len({one["code"] for one in made}) == 3
        service.start()
        _, request = key_and_request(tmp_path)
        assert enroll(service, made[2]["code"], request).status == 200

    def test_codes_and_their_use_survive_a_restart(self, fresh, tmp_path):
        service = fresh().start()
        _, request = key_and_request(tmp_path)
        used, unused = invite(service), invite(service)
        answer = enroll(service, used["code"], request)
        service.kill()
        service.start()
        assert enroll(service, used["code"], request).certificates == answer.certificates
        assert enroll(service, used["code"], key_and_request(tmp_path, stem="other")[1]).status == 401
        assert enroll(service, unused["code"], request).status == 200

    def test_wrong_usage_of_the_command_is_reported(self, shared):
        for options in (["--valid", "soon"], ["--valid", "1s"], ["--count", "0"], ["--list", "--name", "x"]):
            assert herald("device", "invite", "--data", shared.data, *options, check=False).returncode == 64


class TestRequests:
    @pytest.mark.parametrize("body", [b"", b"garbage", b"AAAA", b"\x30\x82", b"\x00" * 100, b"!" * 4000])
    def test_garbage_is_refused_and_the_code_stays_good(self, service, tmp_path, body):
        code = invite(service)["code"]
        answer = enroll(service, code, body)
        assert answer.status == 400 and "request" in answer.words
        _, request = key_and_request(tmp_path)
        assert enroll(service, code, request).status == 200

    @pytest.mark.parametrize(
        "options, remedy",
        [
            (("-newkey", "rsa:1024"), "2048 to 8192 are needed"),
            (("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521"), "P-256"),
            (("-newkey", "ed25519"), "P-256"),
        ],
        ids=["RSA 1024", "P-521", "Ed25519"],
    )
    def test_an_unusable_key_is_refused(self, service, tmp_path, options, remedy):
        _, request = key_and_request(tmp_path, *options)
        answer = enroll(service, invite(service)["code"], request)
        assert answer.status == 400 and remedy in answer.words
        assert len(answer.words.splitlines()) == 1

    def test_a_request_signed_by_another_key_is_refused(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        der = bytearray(base64.b64decode(request))
        der[-1] ^= 1
        answer = enroll(service, invite(service)["code"], base64.b64encode(bytes(der)))
        assert answer.status == 400 and "signed" in answer.words

    def test_another_content_type_is_refused(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        code = invite(service)["code"]
        answer = est.post(service, "simpleenroll", request, "--user", f":{code}", kind="text/plain")
        assert answer.status == 415 and "application/pkcs10" in answer.words

    @pytest.mark.parametrize("more", [(), ("-H", "Transfer-Encoding: chunked")], ids=["length", "chunked"])
    def test_a_too_long_body_is_refused(self, service, more):
        try:
            answer = enroll(service, invite(service)["code"], b"A" * 5_000_000, *more)
        except Unanswered:
            # The connection may end while the rest is still being sent.
            return
        assert answer.status == 413


class TestRenewal:
    def test_a_certificate_is_renewed(self, service, activated, tmp_path):
        pem, identifier = activated
        key, request = key_and_request(tmp_path, stem="next")
        answer = renew(service, pem, request)
        assert answer.status == 200, answer.words
        (certificate,) = answer.certificates
        assert device_id(certificate) == identifier
        following = identity(tmp_path, key, answer, "following")
        # Both are the same device until the older ends, and the list has it once.
        assert connects(service, following, identifier) and connects(service, pem, identifier)
        assert devices(service)[identifier]["serial"] == f"{certificate.serial_number:032x}"

    def test_revoking_the_device_revokes_all_its_certificates(self, service, activated, tmp_path):
        pem, identifier = activated
        key, request = key_and_request(tmp_path, stem="next")
        following = identity(tmp_path, key, renew(service, pem, request), "following")
        herald("device", "revoke", "--data", service.data, identifier)
        for one in (pem, following):
            assert not connects(service, one, identifier)
            answer = renew(service, one, request)
            assert answer.status == 403 and "revoked" in answer.words

    def test_renewal_needs_a_certificate(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        assert est.post(service, "simplereenroll", request).status == 403

    def test_a_code_does_not_replace_the_certificate(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        one = invite(service)
        assert est.post(service, "simplereenroll", request, "--user", f":{one['code']}").status == 403
        assert invitations(service)[one["id"]]["used"] == 0

    def test_a_certificate_does_not_replace_a_code(self, service, activated, tmp_path):
        _, request = key_and_request(tmp_path)
        assert est.post(service, "simpleenroll", request, "--cert", activated[0]).status == 401

    def test_an_expired_certificate_is_not_renewed(self, service, activated, tmp_path):
        _, request = key_and_request(tmp_path)
        advance(service, 366 * 86_400)
        try:
            answer = renew(service, activated[0], request)
            assert answer.status == 403 and "expired" in answer.words
        finally:
            advance(service, -366 * 86_400)

    def test_provider_and_foreign_certificates_are_refused(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        stranger = Authority.foreign(Authority.of_service(service, "device").certificate.subject)
        for pem in (service.provider_certificate(), stranger.issue(tmp_path / "stranger.pem")):
            with pytest.raises(Unanswered):
                renew(service, pem, request)

    def test_an_unrecorded_certificate_is_not_renewed(self, service, tmp_path):
        from certificates import uri

        pem = Authority.of_service(service, "device").issue(
            tmp_path / "forged.pem", subject="x", names=[uri("urn:herald:device:bespoke")]
        )
        _, request = key_and_request(tmp_path)
        answer = renew(service, pem, request)
        assert answer.status == 403 and answer.words == "the device is unknown here"

    def test_renewals_are_rate_limited(self, service, activated, tmp_path):
        _, request = key_and_request(tmp_path)
        statuses = [renew(service, activated[0], request).status for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        advance(service, 3600)
        assert renew(service, activated[0], request).status == 200

    @pytest.mark.parametrize("version", ["1.2", "1.3"])
    def test_a_resumed_session_is_verified_again(self, service, activated, tmp_path, version):
        pem, identifier = activated
        session = tmp_path / "session"
        _, request = key_and_request(tmp_path)
        head = (
            f"POST /.well-known/est/simplereenroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/pkcs10\r\n"
            f"Content-Length: {len(request)}\r\nConnection: close\r\n\r\n"
        )

        def exchange(*options):
            return subprocess.run(
                ["openssl", "s_client", "-connect", f"localhost:{service.listeners['activation']}", "-cert", pem, "-key", pem,
                 "-CAfile", service.ca, f"-tls{version.replace('.', '_')}", "-ign_eof", *options],
                input=head.encode() + request, capture_output=True, timeout=PATIENCE,
            ).stdout.decode(errors="replace")

        assert "200 OK" in exchange("-sess_out", session)
        assert "200 OK" in (resumed := exchange("-sess_in", session)) and "Reused" in resumed
        herald("device", "revoke", "--data", service.data, identifier)
        assert "403 Forbidden" in exchange("-sess_in", session)


class TestClientLimits:
    """Slow, refused and unwelcome clients of the activation listener: each is closed, however long the machine takes."""

    def is_closed(self, connection):
        connection.settimeout(PATIENCE)
        try:
            while connection.recv(4096):
                pass
        except TimeoutError:
            return False
        except (ConnectionError, ssl.SSLError):
            pass
        return True

    def tls(self, service):
        context = ssl.create_default_context(cafile=str(service.ca))
        raw = socket.create_connection(("127.0.0.1", service.listeners["activation"]))
        return context.wrap_socket(raw, server_hostname="localhost")

    @pytest.mark.slow
    def test_refused_clients_are_logged_and_counted(self, fresh, tmp_path):
        service = fresh("--log-level", "info").start()
        with socket.create_connection(("127.0.0.1", service.listeners["activation"])):
            stranger = Authority.foreign("Herald device authority").issue(tmp_path / "stranger.pem")
            _, request = key_and_request(tmp_path)
            for _ in range(3):
                with socket.create_connection(("127.0.0.1", service.listeners["activation"])) as noise:
                    noise.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    assert self.is_closed(noise)
                with pytest.raises(Unanswered):
                    renew(service, stranger, request)
            # A silent client is ordinary: it is counted, and logged only at debug. So are others, if the machine pauses.
            reasons = ("no_tls", "other_authority", "timeout", "ended")
            counts = lambda: [refused(service, "activation", reason) for reason in reasons]
            noise, foreign, silent, ended = eventually(
                lambda: (found := counts())[2] >= 1 and sum(found) == 7 and found, what="the counts"
            )
            assert noise > 0 and foreign > 0 and silent < 4 and ended == 0, (noise, foreign, silent, ended)
        lines = told(service, 2)
        assert len(lines) == 2 and all("activation" in line and "127.0.0.1" in line for line in lines), lines
        assert any("another authority" in line for line in lines)

    @pytest.mark.slow
    def test_slow_clients_are_closed_in_every_phase(self, shared):
        def silent():
            return self.is_closed(socket.create_connection(("127.0.0.1", shared.listeners["activation"])))

        def after_handshake():
            return self.is_closed(self.tls(shared))

        def in_headers():
            connection = self.tls(shared)
            connection.sendall(b"POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost:")
            return self.is_closed(connection)

        def drop_by_drop():
            connection = self.tls(shared)
            connection.settimeout(0.01)
            start = time.monotonic()
            try:
                connection.sendall(b"POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: x\r\nX: ")
                while time.monotonic() - start < 2 * PATIENCE:
                    connection.sendall(b"a")
                    time.sleep(0.3)  # pace: a client that drips bytes
                    try:
                        if connection.recv(1) == b"":
                            return True
                    except TimeoutError:
                        pass
            except (ConnectionError, ssl.SSLError):
                return True
            return False

        with concurrent.futures.ThreadPoolExecutor(4) as crowd:
            phases = [crowd.submit(one) for one in (silent, after_handshake, in_headers, drop_by_drop)]
            assert [phase.result() for phase in phases] == [True] * 4

    def test_requests_that_wait_for_the_ledger_hold_nothing_else_up(self, fresh, tmp_path):
        """More of them than the machine has processors."""
        service = fresh().start()
        _, request = key_and_request(tmp_path)
        codes = [one["code"] for one in invite(service, "--count", str(os.cpu_count() + 2))]
        ledger = sqlite3.connect(service.data / "trust" / "ledger.db", isolation_level=None, timeout=PATIENCE)
        # Requests wait ten seconds for the ledger. A machine that takes longer for the others tries again.
        for _ in range(5):
            begin = time.monotonic()
            ledger.execute("BEGIN EXCLUSIVE")
            with concurrent.futures.ThreadPoolExecutor(len(codes)) as crowd:
                answers = [crowd.submit(enroll, service, code, request) for code in codes]
                assert curl(service, "est/cacerts").status == 200
                url = f"http://127.0.0.1:{service.listeners['console']}/health"
                assert urllib.request.urlopen(url, timeout=PATIENCE).status == 200
                are_held = not any(answer.done() for answer in answers)
                ledger.execute("ROLLBACK")
                statuses = [answer.result().status for answer in answers]
            if time.monotonic() - begin < 9 or (are_held and statuses == [200] * len(codes)):
                break
            codes = [one["code"] for one in invite(service, "--count", str(len(codes)))]
        assert are_held and statuses == [200] * len(codes)
        ledger.close()

    def test_past_the_limit_the_oldest_connections_make_way(self, fresh, tmp_path):
        service = fresh().start()
        # Not only by the time limit of a handshake: again, if the machine pauses for as long as that is.
        for _ in range(5):
            with contextlib.ExitStack() as stack:
                crowd = [
                    stack.enter_context(socket.create_connection(("127.0.0.1", service.listeners["activation"])))
                    for _ in range(1200)
                ]
                assert curl(service, "est/cacerts").status == 200
                assert self.is_closed(crowd[0])
            if refused(service, "activation", "network") > 0:
                return
        pytest.fail("no connection made way")

    @pytest.mark.parametrize(
        "bytes", [b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"a" * 300], ids=["zeros", "no TLS", "TLS"]
    )
    def test_garbage_closes_only_its_connection(self, service, bytes):
        with socket.create_connection(("127.0.0.1", service.listeners["activation"])) as connection:
            connection.sendall(bytes)
            assert self.is_closed(connection)
        assert curl(service, "est/cacerts").status == 200

    @pytest.mark.parametrize("bytes", [b"\x00\r\n\r\n", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"A: b\r\n" * 5000])
    def test_bad_http_closes_only_its_connection(self, service, bytes):
        with self.tls(service) as connection:
            try:
                connection.sendall(bytes)
            except (ConnectionError, ssl.SSLError):
                pass
            assert self.is_closed(connection)
        assert curl(service, "est/cacerts").status == 200

    def test_unfinished_requests_with_a_used_code_hold_no_place(self, service, tmp_path):
        _, request = key_and_request(tmp_path)
        used = invite(service)["code"]
        assert enroll(service, used, request).status == 200
        _, other = key_and_request(tmp_path, stem="other")
        password = base64.b64encode(f":{used}".encode()).decode()
        head = (
            "POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/pkcs10\r\n"
            f"Authorization: Basic {password}\r\nContent-Length: 400\r\n\r\n"
        )
        with contextlib.ExitStack() as held:
            for _ in range(250):
                with contextlib.suppress(OSError):
                    connection = held.enter_context(self.tls(service))
                    connection.sendall(head.encode())
            assert enroll(service, invite(service)["code"], other).status == 200

    def test_a_stop_does_not_wait_for_clients(self, fresh):
        def stop():
            service = fresh("--grace-period", "2s").start()
            held = [self.tls(service), socket.create_connection(("127.0.0.1", service.listeners["activation"]))]
            start = time.monotonic()
            assert service.stop() == 0
            taken = time.monotonic() - start
            for one in held:
                one.close()
            return taken

        # Sooner than a handshake or a request that does not come is given up, which is after ten seconds.
        once_within(8, stop)


class TestCrash:
    @pytest.mark.slow
    def test_a_kill_leaves_code_and_device_consistent(self, fresh, tmp_path, rounds):
        """A service killed at some moment of an enrolment: either the code works still and there is no device, or the
        device is on record and the code is used up; whoever got a certificate is on record."""
        service = fresh().start()
        _, request = key_and_request(tmp_path)
        begun = time.monotonic()
        assert enroll(service, invite(service)["code"], request).status == 200
        usual = time.monotonic() - begun
        outcomes = {self.killed(service, request, usual * 1.2 * rounds.random(number).random()) for number in rounds}
        # Otherwise the moments were chosen badly, and nothing was tested: earlier, or later and later.
        for more in range(1, 20):
            if len(outcomes) < 2:
                outcomes.add(self.killed(service, request, 0 if True in outcomes else usual * more))
        assert outcomes == {True, False}

    def killed(self, service, request, moment):
        """Kills the service so many seconds after the beginning of an enrolment; whether the code was used."""
        one = invite(service)
        with concurrent.futures.ThreadPoolExecutor(1) as other:
            attempt = other.submit(lambda: enroll(service, one["code"], request))
            time.sleep(moment)  # pace: the moment of the kill
            service.kill()
            try:
                answer = attempt.result()
            except Unanswered:
                answer = None
        state = invitations(service)[one["id"]]
        known = devices(service)
        assert (state["used"] == 0) == ("device" not in state)
        if "device" in state:
            assert state["device"] in known
        if answer and answer.status == 200:
            assert state["device"] == device_id(answer.certificates[0])
        assert len(known) == sum(1 for other in invitations(service).values() if other["used"])
        service.start()
        again = enroll(service, one["code"], request)
        assert again.status == 200
        assert "device" not in state or device_id(again.certificates[0]) == state["device"]
        return bool(state["used"])
