"""Authorities, and as many devices as a benchmark wants."""

import base64
import datetime
import json
import shutil
import subprocess
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from machine import RELEASE

# The days for which a set of identities is reused; the certificates last longer.
AGE = 30


class Identities:
    """A data folder with its authorities, and device identities that they signed: `<n>.pem`, identifiers bench-<n>."""

    def __init__(self, folder, count, release=RELEASE):
        self.data = folder / "data"
        self.pem = folder / "pem"
        if not self._is_fresh(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            subprocess.run([str(release / "herald"), "init", "--data", str(self.data)], check=True, capture_output=True)
        self.pem.mkdir(exist_ok=True)
        self.authority = self._authority()
        for missing in range(len(list(self.pem.glob("*.pem"))), count):
            self._enroll(missing)

    def _is_fresh(self, folder):
        mark = self.data / "ca.pem"
        return mark.exists() and time.time() - mark.stat().st_mtime < AGE * 86_400

    def _authority(self):
        for candidate in sorted((self.data / "trust").iterdir()):
            if "device-authority" in candidate.name and b"BEGIN CERTIFICATE" in candidate.read_bytes():
                return candidate
        raise RuntimeError(f"no device authority in {self.data}/trust")

    def _authority_key(self):
        for candidate in sorted((self.data / "trust").iterdir()):
            if "device" in candidate.name and b"PRIVATE KEY" in candidate.read_bytes():
                return serialization.load_pem_private_key(last_pem(candidate.read_bytes()), None)
        raise RuntimeError(f"no key of the device authority in {self.data}/trust")

    def _enroll(self, number):
        if not hasattr(self, "_signer"):
            self._issuer = x509.load_pem_x509_certificate(self.authority.read_bytes())
            self._signer = self._authority_key()
        name = f"bench-{number}"
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.timezone.utc)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._issuer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=2 * AGE))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)
            .add_extension(x509.SubjectAlternativeName(
                [x509.UniformResourceIdentifier(f"urn:herald:device:{name}")]), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
                self._issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value), False)
            .sign(self._signer, hashes.SHA256())
        )
        # Whole or not at all: a run that was interrupted must not leave half of one.
        temporary = self.pem / f"{number}.new"
        temporary.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption()))
        temporary.rename(self.pem / f"{number}.pem")


def last_pem(text):
    """The last object of a PEM file."""
    return text[text.rindex(b"-----BEGIN"):]


def provider_token(path, key_id, team):
    """A provider's token, signed with the key in a .p8 file."""
    key = serialization.load_pem_private_key(path.read_bytes(), None)

    def encode(value):
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(raw).rstrip(b"=")

    signed = encode({"alg": "ES256", "kid": key_id}) + b"." + encode({"iss": team, "iat": int(time.time())})
    r, s = utils.decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
    return (signed + b"." + encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))).decode()
