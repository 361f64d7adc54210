"""Certificates that Herald would not issue: of its authorities or of others, valid or with one fault."""

import datetime
import re

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


def common_name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def uri(text):
    return x509.UniformResourceIdentifier(text)


class Authority:
    """A certificate and key that sign others."""

    def __init__(self, certificate, key):
        self.certificate = certificate
        self.key = key

    @classmethod
    def of_service(cls, service, kind):
        """One of Herald's own: `device` or `provider`."""
        data = (service.data / "trust" / f"{kind}-authority.pem").read_bytes()
        blocks = dict(re.findall(rb"(?s)-----BEGIN [A-Z ]*?(CERTIFICATE|KEY)-----(.*?)-----END", data))
        assert set(blocks) == {b"CERTIFICATE", b"KEY"}, "an authority's file holds its certificate and its key"
        key = serialization.load_pem_private_key(data[re.search(rb"-----BEGIN [A-Z ]*KEY", data).start() :], None)
        return cls(x509.load_pem_x509_certificate(data[data.index(b"-----BEGIN CERTIFICATE") :]), key)

    @classmethod
    def foreign(cls, name, lasts=DAY):
        """An unknown authority, which may have the name of another."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = name if isinstance(name, x509.Name) else common_name(name)
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + lasts)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def of_file(cls, path):
        """A peer's own certificate and key, which are not an authority's."""
        data = path.read_bytes()
        start = re.search(rb"-----BEGIN [A-Z ]*KEY", data).start()
        return cls(x509.load_pem_x509_certificate(data), serialization.load_pem_private_key(data[start:], None))

    def issue(
        self, path, *, subject="somebody", names=(), usages=(ExtendedKeyUsageOID.CLIENT_AUTH,), authority=False,
        key_usage=None, begins=-DAY, ends=DAY, key=None, chain=(), extensions=(),
    ):
        """Writes a certificate, `chain`, and its key into one PEM file, and returns the path."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject if isinstance(subject, x509.Name) else common_name(subject))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + ends)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if key_usage:
            builder = builder.add_extension(key_usage, critical=True)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        data = b"".join(part.public_bytes(serialization.Encoding.PEM) for part in (certificate, *chain))
        data += key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(data)
        return path
