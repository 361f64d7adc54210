"""Credentials: what is made, who may read it, and what becomes of it."""

import itertools
import json
import os
import socket
import stat
import subprocess
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from commands import failed_start, one_line
from parties import assert_accepted, assert_refused
from provider import Disconnected, Provider, away_device, listening_device, load_key
from service import PATIENCE, TEAM, TOPIC, Service, eventually, herald, once_within

APPLE = "1.2.840.113635.100.6.3."


def certificates(path):
    return x509.load_pem_x509_certificates(path.read_bytes())


def labels(path):
    """The kinds of the parts of a PEM file, in order."""
    return [line[11:-5] for line in path.read_text().splitlines() if line.startswith("-----BEGIN ")]


def extension(certificate, number):
    """The bytes of one of Apple's extensions; None if it is not there."""
    for found in certificate.extensions:
        if found.oid.dotted_string == APPLE + number:
            assert not found.critical
            return found.value.value
    return None


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def secrets(data):
    """The files of a data folder that hold keys."""
    return [path for path in sorted((data / "trust").rglob("*")) if path.name != "lock" and mode(path) == 0o600]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data folder that no service uses."""
    data = tmp_path_factory.mktemp("trust") / "data"
    herald("init", "--data", data, "--hostname", "push.example.com", "--hostname", "192.0.2.7")
    return Service(data)


def request(tmp_path):
    """A certificate request and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "what the owner likes")])
    path = tmp_path / "request.csr"
    built = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    path.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    return path, key


def verify(path, folder):
    """Lets openssl check the first certificate of a file against the chain that follows it."""
    own, *chain = certificates(path)
    authority = folder / "chain.pem"
    authority.write_bytes(b"".join(issuer.public_bytes(serialization.Encoding.PEM) for issuer in chain))
    subprocess.run(
        ["openssl", "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", authority, path], check=True
    )


class TestIssuedFiles:
    def test_the_folder_is_closed_to_others(self, folder):
        for path in folder.data.rglob("*"):
            if path.is_file() and b"PRIVATE KEY" in path.read_bytes():
                assert mode(path) == 0o600, path
                parents = [parent for parent in path.parents if folder.data in (parent, *parent.parents)]
                assert any(mode(parent) == 0o700 for parent in parents), path
        assert mode(folder.data / "trust") == 0o700

    def test_the_authority_is_in_ca_pem(self, folder):
        (root,) = certificates(folder.ca)
        assert root.subject == root.issuer
        assert root.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert labels(folder.ca) == ["CERTIFICATE"]

    def test_a_provider_certificate_is_like_apples(self, folder, tmp_path):
        path = folder.provider_certificate("com.example.one")
        assert labels(path)[0] == "CERTIFICATE" and labels(path)[-1].endswith("PRIVATE KEY")
        assert all(label == "CERTIFICATE" for label in labels(path)[:-1])
        assert mode(path) == 0o600
        certificate = certificates(path)[0]
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        assert certificate.public_key() == key.public_key()
        (topic,) = certificate.subject.get_attributes_for_oid(x509.NameOID.USER_ID)
        assert topic.value == "com.example.one"
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(usage) == [x509.ExtendedKeyUsageOID.CLIENT_AUTH]
        assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert (extension(certificate, "1"), extension(certificate, "2")) == (b"\x05\x00", b"\x05\x00")
        verify(path, tmp_path)

    @pytest.mark.parametrize("environment, numbers", [("sandbox", "1"), ("production", "2")])
    def test_a_certificate_of_one_environment_is_marked(self, folder, environment, numbers):
        certificate = certificates(folder.provider_certificate("com.example.one", environment=environment))[0]
        assert [number for number in "12" if extension(certificate, number)] == [numbers]

    def test_a_certificate_of_several_topics_lists_them(self, folder):
        certificate = certificates(folder.provider_certificate("com.example.one", "com.example.one.voip"))[0]
        listed = extension(certificate, "6")
        # SEQUENCE { UTF8String topic, SEQUENCE { UTF8String label … }, … }
        assert listed[0] == 0x30
        for topic in (b"com.example.one", b"com.example.one.voip"):
            assert b"\x0c" + bytes([len(topic)]) + topic + b"\x30" in listed

    def test_a_certificate_names_its_team(self, folder, tmp_path):
        path = tmp_path / "team.pem"
        herald("provider", "certificate", "--data", folder.data, "--topic", TOPIC, "--team", TEAM, "--out", path)
        (unit,) = certificates(path)[0].subject.get_attributes_for_oid(x509.NameOID.ORGANIZATIONAL_UNIT_NAME)
        assert unit.value == TEAM

    def test_the_name_of_a_device_reorders_nothing_on_a_terminal(self, folder, tmp_path):
        name = "\u202elive\u2066 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
        herald("device", "enroll", "--data", folder.data, "--name", name, "--out", tmp_path / "device.pem")
        table = herald("device", "list", "--data", folder.data).stdout
        assert "\\u{202e}live\\u{2066} \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\n" in table and "\u202e" not in table
        listed = json.loads(herald("device", "list", "--data", folder.data, "--json").stdout)
        assert name in [device["name"] for device in listed]

    def test_a_key_is_a_p8_file_like_apples(self, folder):
        path, kid, _ = folder.provider_key()
        assert len(kid) == 10 and kid.isalnum() and kid.upper() == kid
        assert path.name == f"AuthKey_{kid}.p8"
        assert (labels(path), mode(path)) == (["PRIVATE KEY"], 0o600)
        assert isinstance(load_key(path).curve, ec.SECP256R1)

    def test_the_private_key_is_not_kept(self, folder):
        path, _, _ = folder.provider_key()
        secret = load_key(path).private_numbers().private_value.to_bytes(32, "big")
        body = "".join(path.read_text().splitlines()[1:-1]).encode()
        for file in folder.data.rglob("*"):
            if file.is_file():
                content = file.read_bytes()
                assert secret not in content and body[60:100] not in content.replace(b"\n", b"")

    def test_a_device_certificate_names_its_device(self, folder, tmp_path):
        path, id = folder.device("kitchen")
        assert (labels(path)[-1].endswith("PRIVATE KEY"), mode(path)) == (True, 0o600)
        certificate = certificates(path)[0]
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert [(type(name), name.value) for name in names] == [
            (x509.UniformResourceIdentifier, f"urn:herald:device:{id}")
        ]
        (common,) = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        assert id in common.value
        verify(path, tmp_path)

    @pytest.mark.parametrize("command", [["provider", "certificate", "--topic", TOPIC], ["device", "enroll"]], ids=" ".join)
    def test_the_key_of_a_request_never_leaves_its_owner(self, folder, tmp_path, command):
        path, key = request(tmp_path)
        out = tmp_path / "signed.pem"
        herald(*command, "--data", folder.data, "--request", path, "--out", out)
        assert set(labels(out)) == {"CERTIFICATE"}
        assert certificates(out)[0].public_key() == key.public_key()

    def test_a_damaged_request_is_refused(self, folder, tmp_path):
        path, _ = request(tmp_path)
        text = path.read_text()
        for n, damaged in enumerate((text[:200], "", "nonsense", text.replace("M", "N", 3))):
            path.write_text(damaged)
            out = tmp_path / f"{n}.pem"
            command = ["device", "enroll", "--data", folder.data, "--request", path, "--out", out]
            line = one_line(herald(*command, check=False))
            assert "request" in line and str(path) in line
            assert not out.exists()

    def test_an_existing_file_is_not_overwritten_with_a_key(self, folder, tmp_path):
        path = tmp_path / "taken.pem"
        path.write_text("mine")
        enrolled = herald("device", "list", "--data", folder.data, "--json").stdout
        for command in (["device", "enroll"], ["provider", "certificate", "--topic", TOPIC]):
            line = one_line(herald(*command, "--data", folder.data, "--out", path, check=False))
            assert str(path) in line and "remove it" in line
            assert path.read_text() == "mine"
        assert herald("device", "list", "--data", folder.data, "--json").stdout == enrolled


class TestServerCertificate:
    def names(self, service, name="localhost"):
        """The certificate that the server shows to a client."""
        result = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{service.listeners['api']}", "-servername", name, "-showcerts",
             "-verify_return_error", "-CAfile", service.ca],
            capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=PATIENCE,
        )
        assert result.returncode == 0, result.stderr
        certificate = x509.load_pem_x509_certificates(result.stdout.encode())[0]
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(usage) == [x509.ExtendedKeyUsageOID.SERVER_AUTH]
        return {str(name.value) for name in found}

    def test_the_certificate_has_this_machines_and_requested_names(self, fresh):
        service = fresh("--hostname", "push.example.com", "--hostname", "192.0.2.7").start()
        names = self.names(service)
        assert names >= {"localhost", "127.0.0.1", "::1", "sandbox.localhost", "push.example.com", "192.0.2.7"}
        assert socket.gethostname() in names
        service.stop()
        authority = service.ca.read_bytes()
        service.options = ["--hostname", "more.example.com"]
        service.start()
        assert "more.example.com" in self.names(service)
        assert service.ca.read_bytes() == authority

    def test_as_apple_adds_apples_names_and_prints_instructions(self, fresh):
        service = fresh()
        recipe = herald("init", "--data", service.data, "--as-apple").stdout
        wanted = {
            "api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com",
            "api-manage-broadcast.push.apple.com", "api-manage-broadcast.sandbox.push.apple.com",
            "gateway.push.apple.com", "gateway.sandbox.push.apple.com", "feedback.push.apple.com",
            "feedback.sandbox.push.apple.com",
        }
        for name in wanted:
            assert name in recipe
        assert "hosts" in recipe and "ca.pem" in recipe
        service.start()
        assert self.names(service) >= wanted

    @pytest.mark.parametrize("host, public", [("0.0.0.0", "203.0.113.7"), ("::", "2001:db8::7")])
    def test_as_apple_listens_on_all_addresses_only_if_none_is_public(self, fresh, host, public):
        """As in a container: it has private addresses, and listens on all of them."""
        service = fresh("--host", host, prefix=machine("172.18.0.2", "fd00::2"))
        herald("init", "--data", service.data, "--as-apple")
        service.start()
        service.stop()
        result = failed_start(service.data, "--host", host, prefix=machine("172.18.0.2", public))
        assert public in one_line(result) and "init --as-apple" in result.stderr

    def test_init_as_apple_looks_at_the_setting_host(self, tmp_path):
        (tmp_path / "herald.yaml").write_text("host: 0.0.0.0\n")
        command = ["init", "--as-apple", "--config", tmp_path / "herald.yaml", "--data", tmp_path / "data"]
        assert "203.0.113.7" in one_line(herald(*command, prefix=machine("203.0.113.7"), check=False))
        assert not (tmp_path / "data").exists()
        assert "api.push.apple.com" in herald(*command, prefix=machine("10.0.0.7")).stdout


def machine(*addresses):
    """The words before a command that run it on a machine with these addresses, in a network namespace of its own."""
    setup = "".join(f"ip addr add {address} dev lo; " for address in addresses)
    user = ["--map-root-user"] if os.geteuid() else []
    return ["unshare", *user, "--net", "sh", "-ec", f'ip link set lo up; {setup}exec "$@"', "sh"]


class TestPermissions:
    def test_a_readable_secret_stops_the_start(self, fresh):
        service = fresh().start()
        service.stop()
        found = secrets(service.data)
        assert len(found) >= 3
        for path in found:
            path.chmod(0o640)
            line = one_line(failed_start(service.data))
            assert str(path) in line and f"chmod 600 {path}" in line
            path.chmod(0o600)
        service.start()

    def test_an_open_folder_stops_the_start(self, fresh):
        service = fresh().start()
        service.stop()
        for name in ("trust", "store"):
            path = service.data / name
            path.chmod(0o755)
            listing = herald("device", "list", "--data", service.data, check=False)
            for result in (failed_start(service.data), listing):
                line = one_line(result)
                assert str(path) in line and f"chmod 700 {path}" in line
            path.chmod(0o700)
        service.start()

    def test_runtime_files_are_closed_to_others(self, shared):
        run = shared.data / "run"
        assert mode(run) == 0o700
        assert mode(run / "control.sock") == 0o600
        assert mode(run / "admin.token") == 0o600
        assert mode(shared.data / "store") == 0o700


class TestInit:
    def test_a_second_init_changes_no_key(self, fresh):
        service = fresh()
        herald("init", "--data", service.data)
        before = {path: path.read_bytes() for path in secrets(service.data)} | {service.ca: service.ca.read_bytes()}
        result = herald("init", "--data", service.data, check=False)
        assert result.returncode in (0, 1)
        if result.returncode == 1:
            assert str(service.data) in one_line(result)
        for path, content in before.items():
            assert path.read_bytes() == content, path

    def test_a_service_runs_with_the_files_of_init(self, fresh):
        service = fresh()
        herald("init", "--data", service.data)
        certificate = service.provider_certificate()
        key = service.provider_key()
        enrolled = service.device("early")
        service.start()
        token = away_device(service, enrolled=enrolled).token
        for credential in ({"certificate": certificate}, {"key": key}):
            with Provider(service, **credential) as provider:
                assert_accepted(provider.push(token))


class TestRevocation:
    def entries(self, service):
        return json.loads(herald("provider", "list", "--data", service.data, "--json").stdout)

    def credential(self, service, topic):
        """The identifier of the only credential that names the topic."""
        (entry,) = [entry for entry in self.entries(service) if topic in entry["topics"]]
        return entry["id"]

    def test_a_revoked_certificate_is_refused_at_once_on_all_connections(self, shared, parties):
        names = itertools.count()

        def seconds():
            topic = f"{TOPIC}.revoked{next(names)}"
            certificate = shared.provider_certificate(TOPIC, f"{TOPIC}.voip", topic)
            id = self.credential(shared, topic)
            with Provider(shared, certificate) as provider:
                assert_accepted(provider.push(parties.token))
                herald("provider", "revoke", "--data", shared.data, id)
                begin = time.monotonic()
                with pytest.raises(Disconnected):
                    provider.wait_for_goaway()
                    provider.pump(lambda: False)
                taken = time.monotonic() - begin
                assert all(goaway.additional_data == b'{"reason":"BadCertificate"}' for goaway in provider.goaways)
            with pytest.raises((Disconnected, OSError)), Provider(shared, certificate) as provider:
                answer = provider.push(parties.token)
                assert_refused(answer, 403, "BadCertificate")
                raise Disconnected
            assert "revoked" in self.entry(shared, id)
            return taken

        # Not when all certificates are looked through, every ten seconds.
        once_within(3, seconds)
        # The log tells the operator why the provider is refused.
        told = ["provider disconnected: its certificate is revoked or has expired", "provider certificate refused"]
        eventually(lambda: all(any(line in logged for logged in shared.lines) for line in told))

    def test_a_revoked_device_is_disconnected_and_refused(self, shared, parties):
        device = listening_device(shared)
        herald("device", "revoke", "--data", shared.data, device.id)
        device.process.wait(timeout=PATIENCE)
        with pytest.raises(AssertionError, match="no token"):
            device.start(timeout=3)
        listed = json.loads(herald("device", "list", "--data", shared.data, "--json").stdout)
        (entry,) = [entry for entry in listed if entry["id"] == device.id]
        assert "revoked" in entry

    def test_a_revoked_key_is_refused_on_an_open_connection(self, shared, parties):
        key, other = shared.provider_key(), shared.provider_key()
        with Provider(shared, key=key) as provider, Provider(shared, key=other) as bystander:
            assert_accepted(provider.push(parties.token))
            herald("provider", "revoke", "--data", shared.data, key[1])
            # From the command's return on.
            assert_refused(provider.push(parties.token), 403, "InvalidProviderToken")
            assert_accepted(bystander.push(parties.token))
        with Provider(shared, key=key) as provider:
            assert_refused(provider.push(parties.token), 403, "InvalidProviderToken")

    def test_an_offline_revocation_applies_after_the_start(self, fresh):
        service = fresh().start()
        key = service.provider_key()
        token = away_device(service).token
        with Provider(service, key=key) as provider:
            assert_accepted(provider.push(token))
        service.stop()
        herald("provider", "revoke", "--data", service.data, key[1])
        service.start()
        with Provider(service, key=key) as provider:
            assert_refused(provider.push(token), 403, "InvalidProviderToken")

    def test_a_new_certificate_is_accepted_at_once(self, shared, parties):
        for _ in range(3):
            with Provider(shared, key=shared.provider_key()) as provider:
                assert_accepted(provider.push(parties.token))

    def test_a_revocation_survives_a_kill(self, fresh):
        service = fresh().start()
        key = service.provider_key()
        token = away_device(service).token
        herald("provider", "revoke", "--data", service.data, key[1])
        service.kill()
        service.start()
        with Provider(service, key=key) as provider:
            assert_refused(provider.push(token), 403, "InvalidProviderToken")

    def test_a_second_revocation_is_harmless(self, shared):
        _, kid, _ = shared.provider_key("com.example.twice", team="TWICE00001")
        herald("provider", "revoke", "--data", shared.data, kid)
        first = eventually(lambda: self.entry(shared, kid).get("revoked"))
        herald("provider", "revoke", "--data", shared.data, kid, check=False)
        assert self.entry(shared, kid)["revoked"] == first

    def entry(self, service, id):
        return next(entry for entry in self.entries(service) if entry["id"] == id)
