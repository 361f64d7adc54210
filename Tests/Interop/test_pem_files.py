"""Keys, certificates and requests in the shapes that OpenSSL and people give them, wherever one is read."""

import json
import os
import subprocess

import pytest

from provider import away_device
from service import TEAM, TOPIC, herald


def openssl(*arguments, **options):
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, **options).stdout


@pytest.fixture(autouse=True)
def own_files():
    """Makes files that others cannot read, as a key must be."""
    former = os.umask(0o077)
    yield
    os.umask(former)


@pytest.fixture(scope="module")
def key(shared, tmp_path_factory):
    """A provider key of the shared service: its PKCS#8, and what identifies it."""
    path, id, team = shared.provider_key()
    return path.read_bytes(), ["--key-id", id, "--team", team]


@pytest.fixture(scope="module")
def token(shared):
    return away_device(shared).token


def shapes(pem, folder):
    """The forms in which `openssl` writes a key, and people pass it on."""
    plain = folder / "plain.pem"
    plain.write_bytes(pem)
    sec1 = openssl("ec", "-in", plain)
    body = b"".join(line for line in pem.splitlines() if not line.startswith(b"--"))
    yield "PKCS#8", pem
    yield "SEC 1", sec1
    yield "parameters", openssl("ecparam", "-name", "prime256v1") + sec1
    yield "text", openssl("pkey", "-in", plain, "-text")
    yield "DER", openssl("pkey", "-in", plain, "-outform", "DER")
    yield "one line", b"-----BEGIN PRIVATE KEY-----\n" + body + b"\n-----END PRIVATE KEY-----"
    yield "attributes", b"Bag Attributes\n    localKeyID: 01 02\nKey Attributes: <No Attributes>\n" + pem
    yield "Windows", b"\xef\xbb\xbf" + pem.replace(b"\n", b" \r\n")
    yield "a variable", pem.replace(b"\n", b"\\n")


def send(shared, token, *options):
    return herald("send", token, "--topic", TOPIC, "--data", shared.data, "--alert", "x", *options, check=False)


def test_a_provider_key_in_each_shape_sends(shared, key, token, tmp_path):
    pem, options = key
    path = tmp_path / "key.p8"
    for name, content in shapes(pem, tmp_path):
        path.write_bytes(content)
        result = send(shared, token, "--key", path, *options)
        assert result.returncode == 0, (name, result.stderr)


@pytest.mark.parametrize("write, words", [
    (lambda key, out: openssl("pkcs8", "-topk8", "-in", key, "-passout", "pass:x", "-out", out), "encrypted"),
    (lambda key, out: openssl("ec", "-in", key, "-aes128", "-passout", "pass:x", "-out", out), "encrypted"),
    (lambda key, out: openssl("pkey", "-in", key, "-pubout", "-out", out), "no private key, but only PUBLIC KEY"),
    (lambda key, out: openssl("genrsa", "-out", out, "2048"), "of RSA, and one of P-256"),
    (lambda key, out: openssl("ecparam", "-name", "secp384r1", "-genkey", "-out", out), "of P-384"),
    (lambda key, out: openssl("genpkey", "-algorithm", "ed25519", "-out", out), "of Ed25519"),
    (lambda key, out: out.touch(), "it is empty"),
    (lambda key, out: out.write_bytes(key.read_bytes()[:100]), "it is cut off"),
])
def test_a_key_that_cannot_be_used_is_told_what_it_is(shared, key, token, tmp_path, write, words):
    plain, out = tmp_path / "plain.pem", tmp_path / "AuthKey.p8"
    plain.write_bytes(key[0])
    write(plain, out)
    result = send(shared, token, "--key", out, *key[1])
    assert result.returncode != 0 and words in result.stderr, result.stderr
    if words == "encrypted":
        # The advice works.
        openssl("pkey", "-in", out, "-passin", "pass:x", "-out", tmp_path / "new.p8")
        assert send(shared, token, "--key", tmp_path / "new.p8", *key[1]).returncode == 0


def test_provider_certificates_and_authorities_in_other_shapes_send(shared, token, tmp_path):
    pem, ca = shared.provider_certificate().read_bytes(), shared.ca.read_bytes()
    path, authority = tmp_path / "provider.pem", tmp_path / "ca.pem"
    p12, der = tmp_path / "x.p12", tmp_path / "ca.cer"
    for change in (
        lambda text: text.replace(b"\n", b"\r\n"), lambda text: b"\xef\xbb\xbfsubject=x\n" + text,
        lambda text: text.replace(b"\n", b"\\n"),
    ):
        path.write_bytes(change(pem))
        authority.write_bytes(change(ca))
        result = send(shared, token, "--certificate", path, "--ca", authority)
        assert result.returncode == 0, result.stderr
    der.write_bytes(openssl("x509", "-in", shared.ca, "-outform", "DER"))
    path.write_bytes(pem)
    assert send(shared, token, "--certificate", path, "--ca", der).returncode == 0
    # Keychain Access exports such a file.
    openssl("pkcs12", "-export", "-in", path, "-passout", "pass:", "-out", p12)
    assert "PKCS#12" in send(shared, token, "--certificate", p12).stderr
    openssl("pkcs12", "-in", p12, "-nodes", "-passin", "pass:", "-out", path)
    assert b"Bag Attributes" in path.read_bytes()
    assert send(shared, token, "--certificate", path).returncode == 0


def test_a_bundle_is_read_in_any_order(shared, token, tmp_path):
    pem = shared.provider_certificate().read_text()
    leaf, authority, key = ("-----BEGIN " + part for part in pem.split("-----BEGIN ")[1:])
    path = tmp_path / "provider.pem"
    for parts in ((authority, leaf, key), (key, authority, leaf), (authority, key, leaf)):
        path.write_text("".join(parts))
        result = send(shared, token, "--certificate", path)
        assert result.returncode == 0, result.stderr
    path.write_text(leaf + openssl("genpkey", "-algorithm", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", text=True))
    assert "its private key belongs to another certificate" in send(shared, token, "--certificate", path).stderr


@pytest.mark.parametrize("key, options, words", [
    (["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"], ["-sha1"], "it is signed with SHA-1: sign it with SHA-256"),
    (["rsa", "-pkeyopt", "rsa_keygen_bits:2048"], ["-sha1"], "it is signed with SHA-1: sign it with SHA-256"),
    (["rsa", "-pkeyopt", "rsa_keygen_bits:2048"], ["-md5"], "it is signed with MD5"),
    (["rsa", "-pkeyopt", "rsa_keygen_bits:2048"], ["-sha224"], "it is signed with SHA-224"),
    (["rsa", "-pkeyopt", "rsa_keygen_bits:2048"], ["-sigopt", "rsa_padding_mode:pss"], "it is signed with RSA-PSS"),
    (["rsa", "-pkeyopt", "rsa_keygen_bits:2048"], ["-sha3-256"], "it is signed with an algorithm that Herald does not take"),
    (["rsa", "-pkeyopt", "rsa_keygen_bits:1024"], [], "its RSA key has 1024 bits, and 2048 to 8192 are needed"),
    (["ec", "-pkeyopt", "ec_paramgen_curve:secp521r1"], [], "its key is of P-521, and one of P-256, P-384 or RSA is needed"),
    (["ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"], ["-sha1"], "its key is of another kind"),
    (["ed25519"], [], "its key is of Ed25519"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_request_that_cannot_be_used_is_told_what_it_is(shared, tmp_path, key, options, words):
    request = tmp_path / "request.pem"
    openssl("req", "-new", "-newkey", *key, *options, "-nodes", "-subj", "/CN=x", "-keyout", tmp_path / "key.pem", "-out", request)
    result = herald("device", "enroll", "--data", shared.data, "--request", request, "--out", tmp_path / "d.pem", check=False)
    assert result.returncode != 0 and words in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_requests_and_public_keys_in_other_shapes_are_accepted(shared, tmp_path):
    key, request, public = (tmp_path / name for name in ("key.pem", "request.pem", "public.pem"))
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=x",
            "-keyout", key, "-out", request)
    openssl("pkey", "-in", key, "-pubout", "-out", public)
    text = openssl("req", "-in", request, "-text")
    compressed = openssl("ec", "-in", key, "-pubout", "-conv_form", "compressed")
    for number, content in enumerate((text, b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))):
        request.write_bytes(content)
        herald("provider", "certificate", "--data", shared.data, "--topic", TOPIC, "--request", request,
               "--out", tmp_path / f"{number}.pem")
        herald("device", "enroll", "--data", shared.data, "--request", request, "--out", tmp_path / f"d{number}.pem")
    for content in (b"note\n" + public.read_bytes().replace(b"\n", b"\r\n"), compressed,
                    openssl("pkey", "-in", key, "-pubout", "-outform", "DER")):
        public.write_bytes(content)
        made = herald("provider", "key", "--data", shared.data, "--team", TEAM, "--public-key", public, "--json")
        herald("provider", "revoke", json.loads(made.stdout)["id"], "--data", shared.data)
