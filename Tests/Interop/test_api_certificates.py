"""Provider certificates: Apple's forms are accepted, and certificates with one fault are refused."""

import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certificates import DAY, Authority
from parties import OTHER, assert_accepted, assert_refused
from provider import Disconnected, Provider, tls_context
from service import TOPIC


def subject(*topics, team=None):
    """A subject as Apple's push certificates have it: the topic as UID."""
    attributes = [x509.NameAttribute(NameOID.USER_ID, topic) for topic in topics]
    attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, "Apple Push Services: somebody"))
    if team:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, team))
    return x509.Name(attributes)


def apple(number, value=b"\x05\x00"):
    """One of Apple's extensions; the marks of the environments are NULL."""
    return x509.UnrecognizedExtension(x509.ObjectIdentifier(f"1.2.840.113635.100.6.3.{number}"), value)


def der(tag, *parts):
    body = b"".join(parts)
    assert len(body) < 128
    return bytes([tag, len(body)]) + body


def topic_list(*topics):
    """Topics and their labels by turns, as certificates of Apple have them."""
    return der(0x30, *[der(0x0C, topic.encode()) + der(0x30, der(0x0C, b"app")) for topic in topics])


BOTH = (apple(1), apple(2))
RIGHT = {"subject": subject(TOPIC), "extensions": BOTH}


@pytest.fixture(scope="module")
def authority(shared):
    return Authority.of_service(shared, "provider")


def connect(parties, pem, version=None, **options):
    return Provider(parties.service, pem, version=version, **options)


def refusal(parties, pem, version=None):
    """The answer to a refused certificate: the GOAWAY's data, or nothing where there is no connection."""
    try:
        with connect(parties, pem, version) as provider:
            provider.send(parties.token)
            provider.wait_for_close()
            assert all(not answer.ended for answer in provider.answers.values()), provider.answers
            return b"".join(goaway.additional_data for goaway in provider.goaways)
    except (Disconnected, ssl.SSLError, ConnectionError):
        return b""


class TestValidCertificates:
    def test_the_subject_names_the_topic(self, parties, authority, tmp_path):
        with connect(parties, authority.issue(tmp_path / "x.pem", **RIGHT)) as provider:
            assert_accepted(provider.push(parties.token, topic=None))

    @pytest.mark.parametrize("number", [4, 6])
    def test_extensions_list_several_topics(self, parties, authority, tmp_path, number):
        extensions = (*BOTH, apple(number, topic_list(TOPIC, OTHER)))
        pem = authority.issue(tmp_path / "x.pem", subject=subject(TOPIC), extensions=extensions)
        with connect(parties, pem) as provider:
            assert_refused(provider.push(parties.token, topic=None), 400, "MissingTopic")
            assert_accepted(provider.push(parties.token))
            assert_accepted(provider.push(parties.other_token, topic=OTHER))
            assert_refused(provider.push(parties.token, topic=f"{TOPIC}.voip"), 400, "TopicDisallowed")

    def test_a_marker_extension_allows_its_environment(self, parties, authority, tmp_path):
        for number, good, bad in ((1, "sandbox.localhost", "localhost"), (2, "localhost", "sandbox.localhost")):
            pem = authority.issue(tmp_path / f"{number}.pem", subject=subject(TOPIC), extensions=[apple(number)])
            with connect(parties, pem, name=good) as provider:
                assert provider.push("00").reason == "BadDeviceToken"
            with connect(parties, pem, name=bad) as provider:
                assert provider.wait_for_goaway().additional_data == b'{"reason":"BadCertificateEnvironment"}'

    def test_a_certificate_without_a_marker_allows_no_environment(self, parties, authority, tmp_path):
        pem = authority.issue(tmp_path / "x.pem", subject=subject(TOPIC))
        for name in ("localhost", "sandbox.localhost"):
            with connect(parties, pem, name=name) as provider:
                assert provider.wait_for_goaway().additional_data == b'{"reason":"BadCertificateEnvironment"}'

    def test_token_only_push_types_are_refused(self, parties, authority, tmp_path):
        topics = {"liveactivity": f"{TOPIC}.push-type.liveactivity", "location": f"{TOPIC}.location-query"}
        extensions = [*BOTH, apple(6, topic_list(topics["liveactivity"])), apple(4, topic_list(topics["location"]))]
        pem = authority.issue(tmp_path / "x.pem", subject=subject(TOPIC), extensions=extensions)
        with connect(parties, pem) as provider:
            for push_type, topic in topics.items():
                answer = provider.push(parties.token, topic=topic, push_type=push_type)
                assert_refused(answer, 400, "TopicDisallowed")

    def test_other_strong_key_types_are_accepted(self, parties, authority, tmp_path):
        for n, key in enumerate((rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1()))):
            with connect(parties, authority.issue(tmp_path / f"{n}.pem", key=key, **RIGHT)) as provider:
                assert_accepted(provider.push(parties.token))


def key_usage(**named):
    usages = dict.fromkeys(
        ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"],
        False,
    )
    return x509.KeyUsage(**(usages | named))


WRONG = {
    "expired": {"begins": -3 * DAY, "ends": -DAY},
    "not valid yet": {"begins": DAY, "ends": 3 * DAY},
    "for servers": {"usages": (ExtendedKeyUsageOID.SERVER_AUTH,)},
    "for code": {"usages": (ExtendedKeyUsageOID.CODE_SIGNING,)},
    "for anything": {"usages": (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,)},
    "for nothing in particular": {"usages": ()},
    "an authority's": {"authority": True, "key_usage": key_usage(digital_signature=True, key_cert_sign=True)},
    "not for signatures": {"key_usage": key_usage(key_agreement=True)},
    "without a topic": {"subject": x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, TOPIC)])},
    "of two topics in the subject": {"subject": subject(TOPIC, OTHER)},
    "of an impossible topic": {"subject": subject("a b")},
    "of a wildcard": {"subject": subject("com.example.*")},
    "of a list that cannot be read": {"extensions": (*BOTH, apple(6, b"\x30\x84\xff\xff\xff\xff\x0c"))},
    "of an empty list": {"extensions": (*BOTH, apple(6, b"\x30\x00"))},
    "of a list of something else": {"extensions": (*BOTH, apple(6, b"\x02\x01\x05"))},
}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("fault", WRONG)
def test_a_certificate_with_one_fault_is_refused(parties, authority, tmp_path, fault, version):
    pem = authority.issue(tmp_path / "x.pem", **(RIGHT | WRONG[fault]))
    assert refusal(parties, pem, version) in (b"", b'{"reason":"BadCertificate"}')


class TestForeignIssuers:
    def check(self, parties, pem):
        assert refusal(parties, pem) in (b"", b'{"reason":"BadCertificate"}')

    def test_an_unknown_authority(self, parties, tmp_path):
        self.check(parties, Authority.foreign("Herald").issue(tmp_path / "x.pem", **RIGHT))

    def test_an_impostor_with_the_same_name(self, parties, authority, tmp_path):
        impostor = Authority.foreign(authority.certificate.subject)
        self.check(parties, impostor.issue(tmp_path / "x.pem", **RIGHT))
        self.check(parties, impostor.issue(tmp_path / "y.pem", chain=[authority.certificate], **RIGHT))

    def test_the_device_authority(self, parties, tmp_path):
        devices = Authority.of_service(parties.service, "device")
        self.check(parties, devices.issue(tmp_path / "x.pem", **RIGHT))

    def test_the_root(self, parties, tmp_path):
        root = Authority.of_file(parties.service.data / "trust" / "root.pem")
        self.check(parties, root.issue(tmp_path / "x.pem", **RIGHT))

    def test_another_provider(self, parties, tmp_path):
        provider = Authority.of_file(parties.certificate)
        self.check(parties, provider.issue(tmp_path / "x.pem", chain=[provider.certificate], **RIGHT))

    def test_a_device(self, parties):
        path, _ = parties.service.device("intruder")
        self.check(parties, path)

    def test_another_service(self, parties, fresh):
        self.check(parties, fresh().start().provider_certificate())

    def test_the_server_authority(self, parties):
        self.check(parties, parties.service.data / "trust" / "server.pem")


def test_a_weak_key_is_refused(parties, authority, tmp_path):
    pem = authority.issue(tmp_path / "x.pem", key=rsa.generate_private_key(65537, 1024), **RIGHT)
    context = tls_context(parties.service.ca)
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.load_cert_chain(pem)
    assert refusal(parties, context) in (b"", b'{"reason":"BadCertificate"}')
