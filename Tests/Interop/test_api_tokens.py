"""Provider tokens: those of real clients are accepted, and invalid ones are refused."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa, padding

from parties import advance, assert_accepted, assert_refused
from provider import Provider, away_device, base64url, load_key, provider_token, sign
from service import TEAM


def push(parties, authorization):
    """One push on a new connection with this header field; None for none."""
    with Provider(parties.service) as provider:
        return provider.push(parties.token, authorization=authorization)


def standard(data):
    """Base64 with the other alphabet and with padding, as some clients write it."""
    return base64.b64encode(data).decode()


def padded(data):
    return base64.urlsafe_b64encode(data).decode()


def until(make, holds):
    """Makes tokens until one has a property that only some have."""
    return next(token for token in iter(make, None) if holds(token))


def signed(key, header, claims, signature=None):
    """A token of these two texts, signed with the key unless a signature is given."""
    text = f"{base64url(header.encode())}.{base64url(claims.encode())}"
    return f"{text}.{base64url(sign(load_key(key[0]), text) if signature is None else signature)}"


def claims(key, **more):
    return {"iss": key[2], "iat": int(time.time())} | more


GOOD = {
    "plain": lambda key: provider_token(key),
    "signature in DER": lambda key: provider_token(key, der=True),
    "signature in DER with both integers padded": lambda key: until(
        lambda: provider_token(key, der=True), lambda token: len(base64.urlsafe_b64decode(token.split(".")[2] + "==")) == 72
    ),
    "signature in short DER": lambda key: until(
        lambda: provider_token(key, der=True), lambda token: len(base64.urlsafe_b64decode(token.split(".")[2] + "==")) < 70
    ),
    "padding": lambda key: provider_token(key, encode=padded),
    "standard alphabet and padding": lambda key: until(
        lambda: provider_token(key, encode=standard), lambda token: "+" in token and "/" in token
    ),
    "standard alphabet and DER": lambda key: provider_token(key, encode=standard, der=True),
    "iat with a fraction": lambda key: provider_token(key, claims={"iss": key[2], "iat": time.time()}),
    "iat as a string": lambda key: provider_token(key, claims={"iss": key[2], "iat": str(int(time.time()))}),
    "no alg": lambda key: provider_token(key, header={"kid": key[1]}),
    "typ": lambda key: provider_token(key, header={"alg": "ES256", "kid": key[1], "typ": "JWT"}),
    "kid among the claims too": lambda key: provider_token(key, claims=claims(key, kid=key[1])),
    "several lines": lambda key: provider_token(key, indent=2),
    "other claims": lambda key: provider_token(key, claims=claims(key, aud="x", exp=1, nested={"iss": "y", "list": [1, None]})),
    "escapes in strings": lambda key: signed(
        key, '{"alg":"\\u0045S256","kid":"%s"}' % key[1], json.dumps(claims(key)).replace("iss", "\\u0069ss")
    ),
    "headers that point elsewhere": lambda key: provider_token(
        key, header={"alg": "ES256", "kid": key[1], "jku": "https://192.0.2.1/k", "x5u": "file:///etc/passwd"}
    ),
    "55 minutes old": lambda key: provider_token(key, age=55 * 60),
    "almost an hour old": lambda key: provider_token(key, age=3540),
    "half a minute ahead": lambda key: provider_token(key, age=-30),
}


@pytest.mark.parametrize("name", GOOD)
def test_tokens_of_common_libraries_are_accepted(parties, name):
    assert_accepted(push(parties, f"bearer {GOOD[name](parties.key)}"))


@pytest.mark.parametrize("scheme", ["bearer", "Bearer", "BEARER", "bEaReR"])
def test_the_scheme_is_compared_without_case(parties, scheme):
    assert_accepted(push(parties, f"{scheme} {provider_token(parties.key)}"))


@pytest.mark.parametrize("authorization", [None, "", "bearer", "bearer "])
def test_a_request_without_token_is_a_missing_token(parties, authorization):
    with Provider(parties.service) as provider:
        headers = [] if authorization is None else [("authorization", authorization)]
        assert_refused(provider.push(parties.token, headers=headers), 403, "MissingProviderToken")


def hs256(key):
    """Signed with the public key as if it were a shared secret (RFC 8725 §2.1)."""
    public = load_key(key[0]).public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    text = ".".join(
        base64url(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": key[1]}, claims(key))
    )
    return f"{text}.{base64url(hmac.new(public, text.encode(), hashlib.sha256).digest())}"


def other_curve(key):
    text = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "ES384", "kid": key[1]}, claims(key)))
    return f"{text}.{base64url(ec.generate_private_key(ec.SECP384R1()).sign(text.encode(), ec.ECDSA(hashes.SHA384())))}"


def rs256(key):
    text = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": key[1]}, claims(key)))
    secret = rsa.generate_private_key(65537, 2048)
    return f"{text}.{base64url(secret.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def by_another_key(key):
    text = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "ES256", "kid": key[1]}, claims(key)))
    return f"{text}.{base64url(sign(ec.generate_private_key(ec.SECP256R1()), text))}"


def with_signature(change):
    """The token with its signature's bytes changed."""

    def make(key):
        head, _, tail = provider_token(key).rpartition(".")
        return f"{head}.{base64url(change(base64.urlsafe_b64decode(tail + '==')))}"

    return make


def header(**fields):
    return lambda key: provider_token(key, header={"alg": "ES256", "kid": key[1]} | fields)


def body(**fields):
    return lambda key: provider_token(key, claims=claims(key) | fields)


def texts(head='{"alg":"ES256","kid":"KID"}', claim='{"iss":"TEAM","iat":NOW}'):
    """The token of two texts, in which KID, TEAM and NOW stand for what is right."""

    def make(key):
        def fill(text):
            return text.replace("KID", key[1]).replace("TEAM", key[2]).replace("NOW", str(int(time.time())))

        return signed(key, fill(head), fill(claim))

    return make


ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
BAD = {
    "alg none, no signature": lambda key: provider_token(key, header={"alg": "none", "kid": key[1]}).rpartition(".")[0] + ".",
    "alg none, signed": header(alg="none"),
    "alg HS256 with the public key": hs256,
    "alg ES384": other_curve,
    "alg RS256": rs256,
    "alg ES384 with the right signature": header(alg="ES384"),
    "alg in lower case": header(alg="es256"),
    "alg is not a string": header(alg=["ES256"]),
    "alg twice": texts(head='{"alg":"none","alg":"ES256","kid":"KID"}'),
    "crit": header(crit=["b64"], b64=False),
    "unknown kid": header(kid="ZZZZZZZZZZ"),
    "kid in lower case": lambda key: provider_token(key, header={"alg": "ES256", "kid": key[1].lower()}),
    "kid with a space": lambda key: provider_token(key, header={"alg": "ES256", "kid": key[1] + " "}),
    "kid as a path": header(kid="../../../../dev/null"),
    "kid as SQL": header(kid="' OR '1'='1"),
    "kid with NUL": lambda key: provider_token(key, header={"alg": "ES256", "kid": key[1] + "\0"}),
    "kid is very long": header(kid="A" * 4000),
    "kid is a number": header(kid=1),
    "kid missing": lambda key: provider_token(key, header={"alg": "ES256"}),
    "kid among the claims only": lambda key: provider_token(key, header={"alg": "ES256"}, claims=claims(key, kid=key[1])),
    "kid twice": texts(head='{"alg":"ES256","kid":"ZZZZZZZZZZ","kid":"KID"}'),
    "iss of another team": body(iss="STRANGERS1"),
    "iss unknown": body(iss="NOBODY0000"),
    "iss in lower case": body(iss=TEAM.lower()),
    "iss empty": body(iss=""),
    "iss is not a string": body(iss=[TEAM]),
    "iss missing": lambda key: provider_token(key, claims={"iat": int(time.time())}),
    "iss twice": texts(claim='{"iss":"STRANGERS1","iss":"TEAM","iat":NOW}'),
    "iat two minutes ahead": lambda key: provider_token(key, age=-120),
    "iat far ahead": body(iat=99999999999),
    "iat in milliseconds": body(iat=int(time.time() * 1000)),
    "iat in milliseconds as a string": body(iat=str(int(time.time() * 1000))),
    "iat beyond all integers": texts(claim='{"iss":"TEAM","iat":1e400}'),
    "iat of thirty digits": body(iat=10**30),
    "iat as a word": body(iat="now"),
    "iat is true": body(iat=True),
    "iat is null": body(iat=None),
    "iat missing": lambda key: provider_token(key, claims={"iss": key[2]}),
    "iat twice": texts(claim='{"iss":"TEAM","iat":1,"iat":NOW}'),
    "signed by another key": by_another_key,
    "signature missing": with_signature(lambda _: b""),
    "signature of another text": lambda key: ".".join(
        provider_token(key).split(".")[:2] + [provider_token(key, age=5).split(".")[2]]
    ),
    "signature with a bit changed": with_signature(lambda s: bytes([s[0] ^ 1]) + s[1:]),
    "signature cut": with_signature(lambda s: s[:-1]),
    "signature with a byte more": with_signature(lambda s: s + b"\0"),
    "signature of zeroes": with_signature(lambda _: bytes(64)),
    "signature with r = s = n": with_signature(lambda _: ORDER.to_bytes(32, "big") * 2),
    "signature of zeroes in DER": with_signature(lambda _: bytes.fromhex("3006020100020100")),
    "DER that promises more": with_signature(lambda _: bytes.fromhex("3084ffffffff0202")),
    "one part": lambda key: "nonsense",
    "two parts": lambda key: provider_token(key).rpartition(".")[0],
    "four parts": lambda key: provider_token(key) + ".x",
    "no parts": lambda key: "..",
    "not base64": lambda key: "!!!.???.***",
    "a base64 digit alone": lambda key: "A" + provider_token(key),
    "padding in the middle": lambda key: "e30=e30." + provider_token(key).split(".", 1)[1],
    "not JSON": texts(head="nonsense"),
    "header is an array": texts(head='["ES256","KID"]'),
    "claims are a string": texts(claim='"TEAM"'),
    "header with something after it": texts(head='{"alg":"ES256","kid":"KID"}{}'),
    "header not UTF-8": lambda key: base64url(b'{"alg":"ES256","kid":"\xff"}') + ".e30.AAAA",
    "header very deep": texts(head='{"alg":"ES256","kid":"KID","x":%s}' % ("[" * 500 + "]" * 500)),
    "claims very deep": texts(claim='{"iss":"TEAM","iat":NOW,"x":%s}' % ('{"x":' * 500 + "1" + "}" * 500)),
    "very long": lambda key: "A" * 7000,
    "another scheme's": lambda key: base64.b64encode(b"user:password").decode(),
}


@pytest.mark.parametrize("name", BAD)
def test_an_invalid_token_is_refused(parties, name):
    assert_refused(push(parties, f"bearer {BAD[name](parties.key)}"), 403, "InvalidProviderToken")


@pytest.mark.parametrize("age", [3610, 2 * 3600, 365 * 86400])
def test_a_token_older_than_an_hour_has_expired(parties, age):
    assert_refused(push(parties, f"bearer {provider_token(parties.key, age=age)}"), 403, "ExpiredProviderToken")
    assert_refused(push(parties, f"bearer {provider_token(parties.key, age=age, der=True)}"), 403, "ExpiredProviderToken")


def test_an_old_token_with_a_bad_signature_is_invalid_before_it_is_old(parties):
    head, _, _ = provider_token(parties.key, age=7200).rpartition(".")
    assert_refused(push(parties, f"bearer {head}.{base64url(bytes(range(64)))}"), 403, "InvalidProviderToken")


def test_a_bad_token_affects_neither_the_connection_nor_the_next_token(parties):
    good = f"bearer {provider_token(parties.key)}"
    with Provider(parties.service) as provider:
        assert_refused(provider.push(parties.token, authorization="bearer x.y.z"), 403, "InvalidProviderToken")
        assert_accepted(provider.push(parties.token, authorization=good))
        assert_refused(provider.push(parties.token, authorization="bearer x.y.z"), 403, "InvalidProviderToken")
        assert_refused(provider.push(parties.token, authorization=None), 403, "MissingProviderToken")
        assert_accepted(provider.push(parties.token, authorization=good))


def test_one_token_serves_many_connections(parties):
    token = f"bearer {provider_token(parties.key)}"
    for _ in range(5):
        assert_accepted(push(parties, token))


@pytest.fixture
def adjustable(fresh):
    """A service whose clock can be moved, a key, and a device's token."""
    service = fresh("--clock", "adjustable").start()
    return service, service.provider_key(), away_device(service).token


def test_a_token_expires_on_an_open_connection(adjustable):
    service, key, token = adjustable
    with Provider(service, key=key) as provider:
        assert_accepted(provider.push(token))
        advance(service, 59 * 60)
        assert_accepted(provider.push(token))
        advance(service, 2 * 60)
        assert_refused(provider.push(token), 403, "ExpiredProviderToken")
        fresh_claims = claims(key, iat=int(time.time()) + 61 * 60)
        assert_accepted(provider.push(token, authorization=f"bearer {provider_token(key, claims=fresh_claims)}"))


def test_a_connection_may_change_its_token_every_twenty_minutes(adjustable):
    service, key, token = adjustable
    tokens = [f"bearer {provider_token(key, age=age)}" for age in range(4)]
    with Provider(service, key=key) as provider:
        for authorization in tokens[:2]:
            assert_accepted(provider.push(token, authorization=authorization))
        advance(service, 19 * 60)
        refused = provider.push(token, authorization=tokens[2])
        assert_refused(refused, 429, "TooManyProviderTokenUpdates")
        advance(service, 2 * 60)
        assert_accepted(provider.push(token, authorization=tokens[2]))
        refused = provider.push(token, authorization=tokens[3])
        assert_refused(refused, 429, "TooManyProviderTokenUpdates")
        with Provider(service) as another:
            assert_accepted(another.push(token, authorization=tokens[3]))
