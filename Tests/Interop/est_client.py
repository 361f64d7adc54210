"""A client of Enrollment over Secure Transport made of curl and openssl."""

import base64
import dataclasses
import json
import pathlib
import re
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs7

from service import herald


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def words(self):
        return self.body.decode().strip()

    @property
    def certificates(self):
        """The certificates of a PKCS #7 message, as openssl reads them."""
        printed = subprocess.run(
            ["openssl", "pkcs7", "-inform", "DER", "-print_certs"],
            input=base64.b64decode(self.body), capture_output=True, check=True,
        ).stdout
        found = x509.load_pem_x509_certificates(printed)
        assert set(found) == set(pkcs7.load_der_pkcs7_certificates(base64.b64decode(self.body)))
        return found


class Unanswered(Exception):
    """There was no connection, or it ended without an answer."""


def curl(service, path, *options, body=None, file="/dev/null"):
    """One request; the service's certificate is verified."""
    url = f"https://localhost:{service.listeners['activation']}/.well-known/{path}"
    command = ["curl", "-sS", "-i", "--max-time", "50", "--cacert", str(service.ca), *map(str, options), url]
    if body is not None:
        command += ["--data-binary", "@-"]
    result = subprocess.run(command, input=body, capture_output=True, timeout=55)
    if result.returncode != 0:
        raise Unanswered(result.stderr.decode())
    head, _, rest = result.stdout.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    return Answer(int(lines[0].split()[1]), headers, rest)


def key_and_request(folder: pathlib.Path, *options, subject="/CN=lamp", stem="device"):
    """A key file, and a request for it in base64 as RFC 7030 wants it."""
    key, request = folder / f"{stem}.key", folder / f"{stem}.csr"
    options = options or ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
    subprocess.run(
        ["openssl", "req", *options, "-nodes", "-keyout", key, "-subj", subject, "-outform", "DER", "-out", request],
        check=True, capture_output=True,
    )
    return key, base64.encodebytes(request.read_bytes())


def post(service, path, body, *options, kind="application/pkcs10"):
    return curl(service, f"est/{path}", "-H", f"Content-Type: {kind}", "-H", "Expect:", *options, body=body)


def enroll(service, code, body, *options, user=""):
    return post(service, "simpleenroll", body, "--user", f"{user}:{code}", *options)


def renew(service, pem, body, *options):
    return post(service, "simplereenroll", body, "--cert", pem, *options)


def invite(service, *options):
    return json.loads(herald("device", "invite", "--data", service.data, "--json", *options).stdout)


def identity(folder, key, answer, stem="identity"):
    """A device's file as `herald device enroll` writes it."""
    from cryptography.hazmat.primitives.serialization import Encoding

    path = folder / f"{stem}.pem"
    pem = b"".join(one.public_bytes(Encoding.PEM) for one in answer.certificates)
    path.write_bytes(pem + key.read_bytes())
    return path


def device_id(certificate):
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
    return re.fullmatch(r"urn:herald:device:([a-z0-9]{12})", uri)[1]
