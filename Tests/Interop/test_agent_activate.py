"""`herald agent activate` and `renew`, also against false services."""

import datetime
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from agents import Agent
from certificates import Authority, uri
from commands import one_line
from cutting_proxy import CuttingProxy
from est_client import invite
from parties import assert_accepted
from private_mounts import in_private_mounts
from service import HERALD, PATIENCE, TOPIC, free_port, herald


def activate(service, folder, code, *options, check=True, port=None, **more):
    listener = f"https://localhost:{port or service.listeners['activation']}"
    return herald(
        "agent", "activate", "--service", listener, "--code", code, "--folder", folder, *options, check=check, **more
    )


def own_certificate(folder):
    return x509.load_pem_x509_certificates((folder / "identity.pem").read_bytes())[0]


def devices(service):
    return {one["id"]: one for one in json.loads(herald("device", "list", "--data", service.data, "--json").stdout)}


@in_private_mounts
def test_the_address_of_a_name_that_answers_counts(shared, tmp_path):
    (tmp_path / "hosts").write_text("::1 localhost\n127.0.0.1 localhost\n")
    subprocess.run(["mount", "--bind", tmp_path / "hosts", "/etc/hosts"], check=True)
    activate(shared, tmp_path / "lamp", invite(shared)["code"])


class TestActivation:
    def test_a_code_activates_a_device(self, shared, tmp_path):
        folder = tmp_path / "lamp"
        result = activate(shared, folder, invite(shared)["code"], "--name", "Lamp", "--json")
        told = json.loads(result.stdout)
        assert devices(shared)[told["id"]]["name"] == "Lamp"
        assert told["service"] == f"localhost:{shared.listeners['device']}"
        assert sorted(os.listdir(folder)) == ["ca.pem", "identity.pem", "service.json"]
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "identity.pem").stat().st_mode & 0o777 == 0o600
        kept = json.loads((folder / "service.json").read_text())
        assert kept["addresses"] == [
            {"host": "localhost", "port": shared.listeners["device"], "activation": shared.listeners["activation"]}
        ]
        assert kept["announcement"] > 0 and kept["announcement_key"]
        root = x509.load_pem_x509_certificate(shared.ca.read_bytes())
        assert x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()) == root
        kinds = re.findall(r"-----BEGIN ([A-Z ]+)-----", (folder / "identity.pem").read_text())
        assert kinds[:2] == ["CERTIFICATE", "CERTIFICATE"] and kinds[2].endswith("PRIVATE KEY") and len(kinds) == 3

    def test_the_identity_connects(self, shared, tmp_path):
        folder = tmp_path / "lamp"
        activate(shared, folder, invite(shared)["code"])
        process = subprocess.Popen(
            [HERALD, "agent", "run", "--identity", folder / "identity.pem", "--ca", folder / "ca.pem", "--service",
             "localhost", "--device-port", str(shared.listeners["device"]), "--app", TOPIC, "--json"],
            stdout=subprocess.PIPE, text=True,
        )
        try:
            assert any('"token"' in line for line in process.stdout)
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)

    def test_the_environment_is_an_option_of_its_agent_too(self, shared, tmp_path):
        folder = tmp_path / "lamp"
        activate(shared, folder, invite(shared)["code"])
        process = subprocess.Popen(
            [HERALD, "agent", "run", "--folder", folder, "--app", TOPIC, "--allow", "alert", "--environment", "sandbox",
             "--json"],
            stdout=subprocess.PIPE, text=True, cwd=tmp_path,
        )
        try:
            token = next(json.loads(line)["token"] for line in process.stdout if '"token"' in line)
            assert "sandbox" in herald("token", "inspect", token, "--data", shared.data, "--json").stdout
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)

    def test_the_next_step_is_printed_without_secrets(self, shared, tmp_path):
        code = invite(shared)["code"]
        result = activate(shared, tmp_path / "lamp", code)
        assert f"herald agent run --folder {tmp_path / 'lamp'}" in result.stdout
        assert code not in result.stdout + result.stderr and "PRIVATE" not in result.stdout

    def test_an_activation_is_not_logged_as_a_refusal(self, fresh, tmp_path):
        service = fresh("--log-level", "debug").start()
        activate(service, tmp_path / "lamp", invite(service)["code"])
        herald("agent", "renew", "--folder", tmp_path / "lamp")
        service.stop()
        assert not [line for line in service.lines if "refused" in line]

    def test_one_port_for_two_settings_is_told(self, shared, tmp_path):
        folder, port, device = tmp_path / "lamp", shared.listeners["activation"], shared.listeners["device"]
        words = "service and device-port name the same port, {}: service is the activation listener".format
        assert words(port) in activate(shared, folder, invite(shared)["code"], "--device-port", str(port)).stderr
        for same, event, reason in ((device, "connected", ""), (port, "disconnected", "not speak MQTT: check that device-port")):
            process = subprocess.Popen(
                [HERALD, "agent", "run", "--folder", folder, "--app", TOPIC, "--json", "--service", f"localhost:{same}",
                 "--device-port", str(same)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            )
            try:
                ends = (told for told in map(json.loads, process.stdout) if told["event"] in ("connected", "disconnected"))
                # Attempts before may have passed their limit of time.
                last = next(told for told in ends if told["event"] == "connected" or reason and reason in told["reason"])
                assert last["event"] == event, last
            finally:
                process.kill()
                assert words(same) in process.communicate(timeout=PATIENCE)[1]

    def test_code_and_service_may_come_from_the_environment(self, shared, tmp_path):
        environment = {
            **os.environ, "HERALD_CODE": invite(shared)["code"], "HERALD_FOLDER": str(tmp_path / "lamp"),
            "HERALD_SERVICE": f"localhost:{shared.listeners['activation']}",
        }
        herald("agent", "activate", env=environment)
        assert (tmp_path / "lamp" / "identity.pem").exists()

    def test_an_invitation_suggests_the_environment_for_its_code(self, shared):
        """Everybody on the machine sees a command line, and nobody else another process's environment."""
        shown = herald("device", "invite", "--data", shared.data).stdout
        assert re.search(r"^activate +HERALD_CODE=\S+ herald agent activate ", shown, re.M) and "--code" not in shown

    def test_missing_code_or_service_prints_the_usage(self, shared):
        assert herald("agent", "activate", "--service", "localhost", check=False).returncode == 64
        assert herald("agent", "activate", "--code", "x", check=False).returncode == 64


class TestLostAnswers:
    def test_a_lost_answer_is_asked_for_again_with_the_same_key(self, shared, tmp_path):
        """The proxy cuts an activation as often as it takes to lose the answer with the certificate."""
        proxy = CuttingProxy("127.0.0.1", lambda: shared.listeners["activation"])
        try:
            before, passed = set(devices(shared)), 0
            one, folder = invite(shared), tmp_path / "lamp"
            # The answer is on the fourth connection: the bytes of an activation, less the last record.
            passed = self.bytes_of_an_activation(shared, tmp_path)
            proxy.plan("down", passed - 300)
            activate(shared, folder, one["code"], port=proxy.port)
            assert proxy.cuts, "the connection was cut"
            made = set(devices(shared)) - before
            assert not (folder / "next.key").exists()
            told = json.loads(herald("device", "invitations", "--json", "--data", shared.data).stdout)
            assert [other["used"] for other in told if other["id"] == one["id"]] == [1] and len(made) == 2
        finally:
            proxy.close()

    @staticmethod
    def bytes_of_an_activation(service, folder):
        class Counting(CuttingProxy):
            count = 0

            def _allowed(self, direction, data):
                self.count += len(data) if direction == "down" else 0
                return data, False

        proxy = Counting("127.0.0.1", lambda: service.listeners["activation"])
        try:
            activate(service, folder / "counted", invite(service)["code"], port=proxy.port)
            return proxy.count
        finally:
            proxy.close()

    def test_a_key_that_was_kept_gets_the_certificate_of_a_used_code(self, shared, tmp_path):
        code, first, second = invite(shared)["code"], tmp_path / "first", tmp_path / "second"
        activate(shared, first, code)
        # As if the command had been killed before the answer came.
        second.mkdir(mode=0o700)
        pem = (first / "identity.pem").read_text()
        (second / "next.key").write_text(pem[pem.rindex("-----BEGIN"):])
        (second / "next.key").chmod(0o600)
        activate(shared, second, code)
        assert own_certificate(second) == own_certificate(first)
        assert sorted(os.listdir(second)) == ["ca.pem", "identity.pem", "service.json"]


class TestKnownDevices:
    def test_a_device_that_lost_its_identity_comes_back_with_its_token(self, shared, parties, tmp_path):
        folder = tmp_path / "lamp"
        activate(shared, folder, invite(shared, "--name", "Lamp", "--label", "room=hall")["code"])
        agent = Agent(shared, folder, folder / "identity.pem").start("--app", TOPIC, "--allow", "alert")
        token = agent.token(TOPIC)
        agent.stop()
        (known,) = (one for one in devices(shared).values() if one["name"] == "Lamp" and one["labels"])
        made = invite(shared, "--device", known["id"])
        assert made["device"] == known["id"]
        former = own_certificate(folder)
        refused = activate(shared, folder, made["code"], check=False)
        assert refused.returncode != 0 and "--replace" in refused.stderr
        activate(shared, folder, made["code"], "--replace")
        assert own_certificate(folder) != former
        after = devices(shared)[known["id"]]
        assert (after["name"], after["labels"]) == ("Lamp", {"room": "hall"})
        agent.start("--app", TOPIC, "--allow", "alert")
        assert agent.token(TOPIC) == token
        with parties.provider() as provider:
            assert_accepted(provider.push(token, {"aps": {"alert": "welcome back"}}))
        agent.next("notification")
        agent.stop()
        again = activate(shared, tmp_path / "other", made["code"], check=False)
        assert again.returncode != 0 and "is used up: ask for another" in again.stderr

    def test_a_revoked_device_is_not_invited(self, shared):
        _, name = shared.device("revoked")
        herald("device", "revoke", "--data", shared.data, name)
        refused = herald("device", "invite", "--device", name, "--data", shared.data, check=False)
        assert refused.returncode == 1 and "is revoked, which is for good" in refused.stderr
        unknown = herald("device", "invite", "--device", "nobody", "--data", shared.data, check=False)
        assert unknown.returncode == 1 and "no device is named" in unknown.stderr
        both = herald("device", "invite", "--device", name, "--label", "a=b", "--data", shared.data, check=False)
        assert both.returncode == 64


class TestRefusals:
    def assert_nothing_kept(self, folder):
        assert not folder.exists()

    def test_a_mistyped_code_is_found_before_connecting(self, shared, tmp_path):
        code = invite(shared)["code"]
        wrong = code[:-1] + ("0" if code[-1] != "0" else "1")
        line = one_line(activate(shared, tmp_path / "lamp", wrong, check=False, port=1))
        assert "typing error" in line and code[:20] not in line
        assert "copy all of it" in one_line(activate(shared, tmp_path / "lamp", code[:-6], check=False, port=1))
        self.assert_nothing_kept(tmp_path / "lamp")

    def test_a_used_code_is_reported(self, shared, tmp_path):
        code = invite(shared)["code"]
        activate(shared, tmp_path / "one", code)
        assert "used" in one_line(activate(shared, tmp_path / "two", code, check=False))
        assert not (tmp_path / "two").exists()
        self.assert_nothing_kept(tmp_path / "two")

    @pytest.mark.parametrize("listener", ["device", "api", "console"])
    def test_the_port_of_another_listener_is_reported(self, shared, tmp_path, listener):
        code = invite(shared)["code"]
        line = one_line(activate(shared, tmp_path / "lamp", code, check=False, port=shared.listeners[listener]))
        assert "activation port in service" in line and "intercepts" not in line
        # The code is still good.
        activate(shared, tmp_path / "lamp", code)

    def test_an_unreachable_service_is_reported(self, shared, tmp_path):
        with socket.socket() as taken:
            # Bound, so that nobody else takes it, and without listening.
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            line = one_line(activate(shared, tmp_path / "lamp", invite(shared)["code"], check=False, port=port))
        assert "no service answers" in line

    @pytest.mark.parametrize("address", ["http://localhost", "https://localhost/path", "mqtts://localhost", ""])
    def test_an_invalid_address_is_reported(self, shared, tmp_path, address):
        line = one_line(
            herald("agent", "activate", "--service", address, "--code", invite(shared)["code"], "--folder",
                   tmp_path / "lamp", check=False)
        )
        assert "https://push.example.com:2191" in line

    def test_a_name_missing_in_the_certificate_is_reported(self, shared, tmp_path):
        code = invite(shared)["code"]
        line = one_line(
            herald("agent", "activate", "--service", f"https://127.0.0.2:{shared.listeners['activation']}", "--code", code,
                   "--folder", tmp_path / "lamp", check=False)
        )
        # On Linux all of 127/8 is this machine, and the listener is on 127.0.0.1 alone.
        assert "no service answers" in line

    def test_an_identity_is_replaced_only_on_request(self, shared, tmp_path):
        folder = tmp_path / "lamp"
        activate(shared, folder, invite(shared)["code"])
        first, code = own_certificate(folder), invite(shared)["code"]
        assert "--replace" in one_line(activate(shared, folder, code, check=False))
        assert own_certificate(folder) == first
        # It was refused before the service was asked: the code is still good.
        activate(shared, folder, code, "--replace")
        assert own_certificate(folder) != first

    def test_a_folder_open_to_others_is_refused_first(self, shared, tmp_path):
        folder, code = tmp_path / "lamp", invite(shared)["code"]
        folder.mkdir(mode=0o755)
        assert f"chmod 700 {folder}" in one_line(activate(shared, folder, code, check=False))
        folder.chmod(0o700)
        activate(shared, folder, code)


class FalseService:
    """Speaks TLS with certificates of an authority of its own, and notes every byte that comes after the handshake."""

    def __init__(self, folder, *, chain=(), authority=None):
        self.authority = authority or Authority.foreign("Herald Root")
        pem = self.authority.issue(
            folder / "false.pem", subject="localhost", names=[x509.DNSName("localhost")], usages=(), chain=chain
        )
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pem)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        self.heard = b""
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                with self.context.wrap_socket(raw, server_side=True) as connection:
                    connection.settimeout(PATIENCE)
                    while data := connection.recv(4096):
                        self.heard += data
            except (ssl.SSLError, OSError):
                pass

    def close(self):
        self.listener.close()


class TestFalseServices:
    def assert_learns_nothing(self, shared, tmp_path, false, words):
        one = invite(shared)
        try:
            line = one_line(activate(shared, tmp_path / "lamp", one["code"], check=False, port=false.port))
        finally:
            false.close()
        assert words in line
        assert false.connections >= 1, "nobody came, so nothing was tested"
        # Everybody may ask that; the code is not in it.
        assert false.heard.startswith(b"GET /.well-known/herald ") if false.heard else True
        assert one["code"].encode() not in false.heard and b"uthorization" not in false.heard
        # The code is still good.
        activate(shared, tmp_path / "lamp", one["code"])

    def test_a_service_of_another_authority_learns_nothing(self, shared, tmp_path):
        self.assert_learns_nothing(shared, tmp_path, FalseService(tmp_path), "the code was not sent to it")

    def test_a_false_certificate_beside_the_right_authority_learns_nothing(self, shared, tmp_path):
        # The fingerprint is found in the chain, but nothing in it was signed by that authority.
        root = x509.load_pem_x509_certificate(shared.ca.read_bytes())
        false = FalseService(tmp_path, chain=[root], authority=Authority.foreign(root.subject))
        self.assert_learns_nothing(shared, tmp_path, false, "not signed by the authority")

    def test_another_real_service_learns_nothing(self, shared, fresh, tmp_path):
        other = fresh("--log-level", "debug").start()
        code = invite(shared)["code"]
        line = one_line(activate(other, tmp_path / "lamp", code, check=False))
        assert "the code was not sent to it" in line
        assert not any("refused" in line and "code" in line for line in other.lines)
        activate(shared, tmp_path / "lamp", code)


class TestRenewal:
    def test_a_device_renews_its_certificate(self, shared, tmp_path):
        folder = tmp_path / "lamp"
        activate(shared, folder, invite(shared)["code"])
        before = own_certificate(folder)
        herald("agent", "renew", "--folder", folder)
        after = own_certificate(folder)
        assert after.subject == before.subject and after.serial_number != before.serial_number
        assert after.public_key() != before.public_key()
        text = (folder / "identity.pem").read_bytes()
        key = load_pem_private_key(text[re.search(rb"-----BEGIN [A-Z ]*KEY", text).start() :], None)
        assert key.public_key() == after.public_key()
        assert (folder / "identity.pem").stat().st_mode & 0o777 == 0o600
        herald("agent", "renew", "--folder", folder)

    def test_a_revoked_device_keeps_its_old_certificate(self, shared, tmp_path):
        folder = tmp_path / "lamp"
        told = json.loads(activate(shared, folder, invite(shared)["code"], "--json").stdout)
        herald("device", "revoke", "--data", shared.data, told["id"])
        before = (folder / "identity.pem").read_bytes()
        assert "revoked" in one_line(herald("agent", "renew", "--folder", folder, check=False))
        assert (folder / "identity.pem").read_bytes() == before

    def test_a_folder_without_a_device_is_reported_with_the_remedy(self, tmp_path):
        line = one_line(herald("agent", "renew", "--folder", tmp_path / "nothing", check=False))
        assert "herald agent activate" in line

    @pytest.mark.slow
    @pytest.mark.parametrize("is_away", [True, False], ids=["the service is away", "the service disconnects it"])
    def test_a_running_agent_renews_and_reconnects(self, fresh, tmp_path, is_away):
        # Its port is one that nobody takes while it is away.
        service = fresh("--device-certificate-days", "30").start("--device-port", str(free_port()))
        # A certificate of the same device that is past two thirds of its life, and soon over.
        # Another device, if a busy machine needs longer to renew it, or renews it before the agent connects with it.
        for seconds in (25, 26, 120):
            folder = tmp_path / f"lamp{seconds}"
            told = json.loads(activate(service, folder, invite(service)["code"], "--json").stdout)
            ends = datetime.timedelta(seconds=seconds)
            old = Authority.of_service(service, "device").issue(
                folder / "identity.pem", subject=told["id"], names=[uri(f"urn:herald:device:{told['id']}")], ends=ends
            )
            old.chmod(0o600)
            before, over = own_certificate(folder), time.monotonic() + seconds
            process = subprocess.Popen(
                [HERALD, "agent", "run", "--folder", folder, "--app", TOPIC, "--allow", "alert", "--json",
                 "--longest-pause", "500ms"],
                stdout=subprocess.PIPE, text=True, cwd=tmp_path,
            )
            seen = []
            for line in process.stdout:
                seen.append(json.loads(line)["event"])
                if {"certificate_renewed", "connected"} <= set(seen) or "certificate_expired" in seen:
                    break
            is_renewed = own_certificate(folder).serial_number != before.serial_number
            is_used = "connected" in seen[: seen.index("certificate_renewed")] if "certificate_renewed" in seen else False
            if is_renewed and (is_away or is_used):
                break
            process.kill()
            process.wait(timeout=PATIENCE)
        try:
            assert is_renewed and (is_away or is_used), seen
            # The old one ends while the connection is open, or while the service is away.
            if is_away:
                port = str(service.listeners["device"])
                service.stop()
                time.sleep(max(0, over + 2 - time.monotonic()))  # pace: the certificate's end
                service.start("--device-port", port)
            assert any(json.loads(line)["event"] == "disconnected" for line in process.stdout)
            assert any(json.loads(line)["event"] == "connected" for line in process.stdout)
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)

    def test_a_false_service_cannot_renew(self, shared, tmp_path):
        folder = tmp_path / "lamp"
        activate(shared, folder, invite(shared)["code"])
        false = FalseService(tmp_path)
        place = json.loads((folder / "service.json").read_text())
        place["addresses"][0]["activation"] = false.port
        (folder / "service.json").write_text(json.dumps(place))
        try:
            assert "not signed by the authority" in one_line(herald("agent", "renew", "--folder", folder, check=False))
        finally:
            false.close()
        # Everybody may ask that, without a certificate.
        assert false.connections >= 1 and false.heard.split(b"\r\n")[0] in (b"", b"GET /.well-known/herald HTTP/1.1")


def test_a_device_port_that_does_not_count_is_named(fresh, tmp_path):
    service = fresh("--device-addresses", "push.example.com:5223:2191").start()
    options = ("--device-port", "8883")
    said = activate(service, tmp_path / "lamp", invite(service)["code"], *options).stderr
    assert "device-port 8883 does not count: `herald agent run --device-port 8883` comes before them" in said
    # As announced.
    assert activate(service, tmp_path / "other", invite(service)["code"], "--device-port", "5223").stderr == ""
