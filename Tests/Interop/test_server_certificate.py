"""The server's certificate is exchanged before its end while the service runs; connections stay."""

import datetime
import json
import ssl
import subprocess
import time

import pytest
from cryptography import x509

from certificates import Authority
from parties import advance
from provider import Provider, away_device
from service import PATIENCE, eventually, herald

DAY = 86_400


def shown(service, listener):
    """The certificate that a listener shows."""
    pem = ssl.get_server_certificate(("127.0.0.1", service.listeners[listener]))
    return x509.load_pem_x509_certificate(pem.encode())


def test_the_certificate_is_renewed_without_ending_connections(fresh, enroll):
    service = fresh("--clock", "adjustable").start()
    key = service.provider_key()
    phone = enroll(service)
    link = phone.stay()
    token = link.register()
    before = shown(service, "api")
    assert shown(service, "device") == before
    with Provider(service, service.provider_certificate()) as provider:
        assert provider.push(token).status == 200
        link.notification()
        advance(service, 300 * DAY)
        link.settled()
        assert shown(service, "api") == before
        # It lasts 820 days, and is exchanged within the last ninety.
        advance(service, 431 * DAY)
        after = eventually(lambda: (now := shown(service, "api")) != before and now, what="another certificate")
        assert shown(service, "device") == after
    link.settled()
    assert after.not_valid_after_utc.timestamp() > time.time() + (731 + 800) * DAY
    assert _names(before) == _names(after)
    # Clients trust it as they trusted the one before, whatever their clock says.
    with Provider(service, key=key) as provider:
        provider.ping()
    assert phone.stay().connack.session_present
    eventually(lambda: any("certificate was renewed" in line for line in service.lines), what="the log")
    assert sum("certificate was renewed" in line for line in service.lines) == 1


def test_a_certificate_of_the_user_is_left_alone(fresh, tmp_path):
    service = fresh("--clock", "adjustable").start()
    other = fresh().start()
    # Another service's certificate is as good as any of the user's own.
    (service.data / "trust" / "server.pem").write_bytes((other.data / "trust" / "server.pem").read_bytes())
    own = eventually(lambda: (now := shown(service, "api")) == shown(other, "api") and now)
    advance(service, 800 * DAY)
    eventually(lambda: any("is your own and expires soon" in line for line in service.lines))
    assert shown(service, "api") == own


LISTENERS = ("api", "device", "activation", "binary", "feedback")


def test_a_command_renews_the_certificate_of_a_running_service(fresh, enroll):
    service = fresh("--hostname", "push.example.com").start()
    link = enroll(service).stay()
    before = shown(service, "api")
    report = json.loads(herald("init", "--renew", "--hostname", "next.example.com", "--data", service.data, "--json").stdout)
    # In force as the command ends, everywhere, and with the former names; connections stay.
    after = {listener: shown(service, listener) for listener in LISTENERS}
    assert len(set(after.values())) == 1 and before not in after.values()
    assert _names(after["api"]) - _names(before) == {x509.DNSName("next.example.com")}
    assert datetime.datetime.fromisoformat(report["expires"]) == after["api"].not_valid_after_utc
    link.settled()
    peer = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{service.listeners['api']}", "-CAfile", service.ca,
         "-verify_hostname", "next.example.com", "-verify_return_error", "-brief"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
    )
    assert peer.returncode == 0, peer.stderr


@pytest.fixture
def own(fresh, tmp_path):
    """A service with a certificate of the user's own, and what puts another file in its place by a rename."""
    service = fresh().start()
    path = service.data / "trust" / "server.pem"

    def put(text):
        draft = path.with_name("next.pem")
        draft.write_text(text)
        draft.chmod(0o600)
        draft.rename(path)

    return service, path, put


def issued(tmp_path, *options, name="own"):
    """A certificate that signs itself, and its key."""
    command = ["openssl", "req", "-x509", "-nodes", "-subj", "/CN=own", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
               "-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.crt", "-days", "400", *options]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=PATIENCE)
    return (tmp_path / f"{name}.crt").read_text(), (tmp_path / f"{name}.key").read_text()


def warnings(service, path):
    """The warnings of the service about a file; that devices do not know the user's own authority is another warning."""
    all = json.loads(herald("status", "--data", service.data, "--json").stdout).get("warnings", [])
    return [text for text in all if str(path) in text]


EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def test_a_certificate_of_the_users_own_is_renewed_by_a_rename(own, tmp_path):
    service, path, put = own
    put("".join(issued(tmp_path, *EC)))
    before = eventually(lambda: (now := shown(service, "api")).subject.rfc4514_string() == "CN=own" and now)
    refused = herald("init", "--renew", "--data", service.data, check=False)
    assert refused.returncode == 1
    assert f"another authority issued the certificate in {path}, so Herald cannot renew it: write the next one" in refused.stderr
    assert shown(service, "api") == before
    put("".join(issued(tmp_path, "-newkey", "rsa:2048")))
    eventually(lambda: shown(service, "api") != before, what="the next certificate")


def broken(fault, tmp_path, certificate, key):
    """A file that is not a server certificate, or one of no use."""
    match fault:
        case "empty": return ""
        case "no-key": return certificate
        case "another-key": return certificate + issued(tmp_path, *EC, name="other")[1]
        case "cut": return (certificate + key)[:-100]
        case "ed448": return "".join(issued(tmp_path, "-newkey", "ed448", name="odd"))
        case "small-rsa": return "".join(issued(tmp_path, "-newkey", "rsa:512", "-sha256", name="odd"))
    begins, ends = {"expired": (-3, -1), "future": (1, 3)}[fault]
    term = {"begins": datetime.timedelta(days=begins), "ends": datetime.timedelta(days=ends)}
    return Authority.foreign("own").issue(tmp_path / "odd.pem", usages=[], **term).read_text()


@pytest.mark.parametrize("fault", ["empty", "no-key", "another-key", "cut", "ed448", "small-rsa", "expired", "future"])
def test_a_broken_file_is_refused_in_words_and_the_former_certificate_stays(own, tmp_path, fault):
    service, path, put = own
    device = away_device(service)
    certificate, key = issued(tmp_path, *EC)
    put(certificate + key)
    before = eventually(lambda: (now := shown(service, "api")).subject.rfc4514_string() == "CN=own" and now)
    put(broken(fault, tmp_path, certificate, key))
    eventually(lambda: warnings(service, path), what="the warning")
    assert {shown(service, listener) for listener in LISTENERS} == {before}
    # New TLS contexts for another reason change neither.
    herald("device", "revoke", "--data", service.data, device.id, check=False)
    assert {shown(service, listener) for listener in LISTENERS} == {before} and warnings(service, path)
    failed = herald("init", "--renew", "--data", service.data, check=False)
    assert failed.returncode == 1 and str(path) in failed.stderr
    # It is read every second, and said once.
    assert sum("cannot be reloaded" in line for line in service.lines) <= 1
    put(certificate + key)
    eventually(lambda: not warnings(service, path), what="the end of the warning")
    assert shown(service, "api") == before


def _names(certificate):
    return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
