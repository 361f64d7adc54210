"""The server's certificate is exchanged before its end while the service runs; connections stay."""

import ssl
import time

from cryptography import x509

from parties import advance
from provider import Provider
from service import eventually

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


def _names(certificate):
    return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
