"""Keys and tokens of NATS: nkeys, and the JWTs of an operator, an account and a user."""

import base64
import hashlib
import json

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEED = 18 << 3
OPERATOR, ACCOUNT, USER = 14 << 3, 0, 20 << 3


def _base32(data):
    return base64.b32encode(data).decode().rstrip("=")


def _checked(data):
    """Data with its CRC-16 (XMODEM)."""
    checksum = 0
    for byte in data:
        checksum ^= byte << 8
        for _ in range(8):
            checksum = (checksum << 1 ^ 0x1021 if checksum & 0x8000 else checksum << 1) & 0xFFFF
    return data + checksum.to_bytes(2, "little")


def _base64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    """A key pair of a kind."""

    def __init__(self, kind):
        self.kind = kind
        self._key = Ed25519PrivateKey.generate()
        raw = self._key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.public = _base32(_checked(bytes([kind]) + raw))

    @property
    def seed(self):
        raw = self._key.private_bytes(
            serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
        )
        return _base32(_checked(bytes([SEED | self.kind >> 5, (self.kind & 31) << 3]) + raw))

    def jwt(self, subject, name, kind, **fields):
        """A token about the public key `subject`, signed by this one."""
        claims = {
            "iss": self.public, "sub": subject, "name": name, "iat": 1_700_000_000,
            "nats": {"type": kind, "version": 2, **fields},
        }
        claims["jti"] = _base32(hashlib.sha256(json.dumps(claims).encode()).digest())
        parts = [{"typ": "JWT", "alg": "ed25519-nkey"}, claims]
        text = ".".join(_base64(json.dumps(part).encode()) for part in parts)
        return f"{text}.{_base64(self._key.sign(text.encode()))}"


def creds(jwt, seed):
    """The content of a `.creds` file."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
