"""Prints how `cryptography` reads the vectors of its own suite, `cryptography_vectors`: a line of JSON for each file.

Members: `path`; `key`, the public key of the only private key (SubjectPublicKeyInfo in hex); `certificates`, the SHA-256 of each;
`list`, the serial numbers of a revocation list with the times of revocation, and `signer`, the file of the certificate that
signed it; `request`, the public key of a signing request whose signature is right. A member that could not be read is absent.
"""

import hashlib
import json
import warnings
from pathlib import Path

import cryptography_vectors
from cryptography import x509
from cryptography.hazmat.primitives import serialization

FOLDERS = ["asymmetric", "pkcs7", "x509"]
# Files of test cases for algorithms are longer.
LONGEST = 65_536
# The certificates of another folder once more, in containers.
OTHERS = ["certpairs", "pkcs12", "smime"]

warnings.simplefilter("ignore")


def spki(key) -> str:
    """A public key as SubjectPublicKeyInfo."""
    encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(encoding, form).hex()


def first(*readers):
    """The result of the first reader that does not fail; None if all do."""
    for reader in readers:
        try:
            return reader()
        except Exception:  # Any failure, also one of the library itself, means "cannot be read".
            continue
    return None


def certificates(data: bytes):
    return first(
        lambda: x509.load_pem_x509_certificates(data),
        lambda: [x509.load_der_x509_certificate(data)],
    )


def described(data: bytes) -> dict:
    """The members of a file."""
    line = {}
    key = first(
        lambda: spki(serialization.load_pem_private_key(data, None).public_key()),
        lambda: spki(serialization.load_der_private_key(data, None).public_key()),
    )
    if key:
        line["key"] = key
    if found := certificates(data):
        line["certificates"] = [hashlib.sha256(each.public_bytes(serialization.Encoding.DER)).hexdigest() for each in found]
    revoked = first(lambda: x509.load_pem_x509_crl(data), lambda: x509.load_der_x509_crl(data))
    if revoked is not None:
        line["list"] = first(lambda: entries(revoked))
        line["signer"] = first(lambda: signer(revoked))
    request = first(lambda: x509.load_pem_x509_csr(data), lambda: x509.load_der_x509_csr(data))
    if request and first(lambda: request.is_signature_valid):
        line["request"] = first(lambda: spki(request.public_key()))
    return {name: value for name, value in line.items() if value is not None}


def entries(revoked) -> dict[str, int]:
    """The serial numbers of a list in hex, with the seconds since 1970."""
    return {number(each): int(each.revocation_date_utc.timestamp()) for each in revoked}


def number(entry) -> str:
    """A serial number in whole bytes."""
    return entry.serial_number.to_bytes(20, "big").hex()


def signer(revoked) -> str | None:
    """The file of the certificate that signed a list."""
    for path, authority in AUTHORITIES.get(revoked.issuer.public_bytes(), []):
        if first(lambda: revoked.is_signature_valid(authority.public_key())):
            return str(path.relative_to(ROOT))
    return None


ROOT = Path(cryptography_vectors.__file__).parent
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.stat().st_size <= LONGEST and path.parent.name not in OTHERS
)
AUTHORITIES: dict[bytes, list] = {}
for file in FILES:
    for certificate in certificates(file.read_bytes()) or []:
        subject = first(lambda: certificate.subject.public_bytes())
        AUTHORITIES.setdefault(subject, []).append((file, certificate))

print(ROOT)
for file in FILES:
    print(json.dumps({"path": str(file.relative_to(ROOT))} | described(file.read_bytes())))
