"""Tokens that were changed in some way, by name: what a server answers to each was recorded from kube-apiserver.

`every(minter)` makes them with a key that the server trusts; `record_mutations.py` says how the answers were recorded.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

Json = dict[str, Any]
ISSUER = "https://kubernetes.default.svc"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Minter:
    """Signs anything. `claims` are those of a token that is accepted."""

    def __init__(self, key: rsa.RSAPrivateKey, now: int, account_uid: str) -> None:
        self.key = key
        self.now = now
        spki = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.header: Json = {"alg": "RS256", "kid": b64(hashlib.sha256(spki).digest())}
        self.claims: Json = {
            "aud": [ISSUER],
            "exp": now + 3600,
            "iat": now,
            "iss": ISSUER,
            "jti": "0d5e2171-9040-4ed1-9446-b8259d8af7a0",
            "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": account_uid}},
            "nbf": now,
            "sub": "system:serviceaccount:default:robot",
        }

    def raw(self, header: bytes, claims: bytes, sign: Callable[[bytes], bytes] | None = None) -> str:
        signed = f"{b64(header)}.{b64(claims)}"
        return f"{signed}.{b64((sign or self.sign)(signed.encode()))}"

    def sign(self, data: bytes) -> bytes:
        return self.key.sign(data, padding.PKCS1v15(), hashes.SHA256())

    def token(self, header: Json | None = None, **claims: Any) -> str:
        """With some claims changed; None takes one away."""
        merged = {name: value for name, value in (self.claims | claims).items() if value is not REMOVED}
        heading = {name: value for name, value in (self.header | (header or {})).items() if value is not REMOVED}
        return self.raw(json.dumps(heading).encode(), json.dumps(merged).encode())

    def text(self) -> tuple[bytes, bytes]:
        return json.dumps(self.header).encode(), json.dumps(self.claims).encode()


REMOVED = object()


def every(mint: Minter) -> Iterator[tuple[str, str]]:
    yield from _spelling(mint)
    yield from _headers(mint)
    yield from _algorithms(mint)
    yield from _claims(mint)


def _spelling(mint: Minter) -> Iterator[tuple[str, str]]:
    good = mint.token()
    head, body, signature = good.split(".")
    yield "good", good
    yield "extra = at the end", f"{good}="
    yield "two extra = at the end", f"{good}=="
    yield "padded header", f"{head}=.{body}.{signature}"
    yield "padded claims", f"{head}.{body}=.{signature}"
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    yield "surplus bits of the signature", f"{good[:-1]}{alphabet[alphabet.index(good[-1]) ^ 1]}"
    yield "standard alphabet", f"{head}.{body}.{signature.replace('-', '+').replace('_', '/')}+"
    yield "one character less", good[:-1]
    yield "signature empty", f"{head}.{body}."
    yield "signature of zeros", f"{head}.{body}.{b64(bytes(256))}"
    yield "signature doubled", f"{head}.{body}.{signature}{signature}"
    yield "no signature part", f"{head}.{body}"
    yield "four parts", f"{good}.{signature}"
    yield "five parts", f"{good}.a.b"
    yield "claims empty", f"{head}..{signature}"
    yield "space at the end", f"{good} "
    yield "space before", f" {good}"
    yield "line break inside", f"{good[:30]}\n{good[30:]}"
    yield "JSON serialization", json.dumps({"protected": head, "payload": body, "signature": signature})
    yield "not ASCII", f"{head}.{body}.{signature}\u00e9"
    yield "huge header", mint.token({"x": "a" * 20_000})
    yield "claims of another token", f"{head}.{mint.token(sub='x').split('.')[1]}.{signature}"


def _headers(mint: Minter) -> Iterator[tuple[str, str]]:
    header, claims = mint.text()
    yield "header with typ", mint.token({"typ": "at+jwt"})
    yield "header with crit exp", mint.token({"crit": ["exp"]})
    yield "header with crit empty", mint.token({"crit": []})
    yield "header with b64 false", mint.token({"b64": False})
    yield "header with crit b64 true", mint.token({"crit": ["b64"], "b64": True})
    yield "header with cty", mint.token({"cty": "JWT"})
    yield "header with zip", mint.token({"zip": "DEF"})
    yield "header with jku", mint.token({"jku": "https://evil.example/jwks"})
    yield "header with a nonce", mint.token({"nonce": "a"})
    yield "no kid", mint.token({"kid": REMOVED})
    yield "unknown kid", mint.token({"kid": "other"})
    yield "kid empty", mint.token({"kid": ""})
    yield "kid a number", mint.token({"kid": 1})
    yield "kid null", mint.token({"kid": None})
    yield "duplicate alg", mint.raw(b'{"alg":"none",' + header[1:], claims)
    yield "duplicate kid", mint.raw(b'{"kid":"x",' + header[1:], claims)
    yield "header followed by text", mint.raw(header + b"{}", claims)
    yield "header followed by space", mint.raw(header + b" \n", claims)
    yield "header null", mint.raw(b"null", claims)
    yield "header a list", mint.raw(b"[]", claims)
    yield "header not UTF-8", mint.raw(b'{"x":"\xff",' + header[1:], claims)
    yield "alg in capitals", mint.raw(header.replace(b'"alg"', b'"ALG"'), claims)
    yield "no alg", mint.token({"alg": REMOVED})
    yield "alg null", mint.token({"alg": None})
    yield "alg a list", mint.token({"alg": ["RS256"]})
    yield "alg in lower case", mint.token({"alg": "rs256"})


def _algorithms(mint: Minter) -> Iterator[tuple[str, str]]:
    public, claims = mint.key.public_key(), mint.text()[1]
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    pem, der = (public.public_bytes(each, form) for each in (serialization.Encoding.PEM, serialization.Encoding.DER))

    def header(algorithm: str) -> bytes:
        return json.dumps({**mint.header, "alg": algorithm}).encode()

    yield "alg none", mint.raw(header("none"), claims, lambda _: b"")
    yield "alg none with the good signature", mint.raw(header("none"), claims)
    for name, key in (("PEM", pem), ("PEM without line break", pem.rstrip()), ("DER", der), ("nothing", b"")):
        sign = _hs256(key)
        yield f"HS256 with the public key as {name}", mint.raw(header("HS256"), claims, sign)
    other = rsa.generate_private_key(65537, 2048)
    yield "signed by another key", mint.raw(header("RS256"), claims, _rs(other, hashes.SHA256()))
    yield "RS384", mint.raw(header("RS384"), claims, _rs(mint.key, hashes.SHA384()))
    yield "RS512", mint.raw(header("RS512"), claims, _rs(mint.key, hashes.SHA512()))
    yield "RS512 said, RS256 signed", mint.raw(header("RS512"), claims)
    yield "PS256", mint.raw(header("PS256"), claims, _ps(mint.key))
    yield "PS256 said, RS256 signed", mint.raw(header("PS256"), claims)
    yield "ES256", mint.raw(header("ES256"), claims, lambda _: bytes(64))
    yield "EdDSA", mint.raw(header("EdDSA"), claims, lambda _: bytes(64))
    own = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    point = {"kty": "EC", "crv": "P-256", "x": b64(own.x.to_bytes(32, "big")), "y": b64(own.y.to_bytes(32, "big"))}
    yield "key in the header", mint.token({"jwk": point, "alg": "ES256"})


def _hs256(key: bytes) -> Callable[[bytes], bytes]:
    return lambda data: hmac.new(key, data, hashlib.sha256).digest()


def _rs(key: rsa.RSAPrivateKey, hashed: Any) -> Callable[[bytes], bytes]:
    return lambda data: key.sign(data, padding.PKCS1v15(), hashed)


def _ps(key: rsa.RSAPrivateKey) -> Callable[[bytes], bytes]:
    pad = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    return lambda data: key.sign(data, pad, hashes.SHA256())


def _claims(mint: Minter) -> Iterator[tuple[str, str]]:
    now = mint.now
    header, claims = mint.text()
    for seconds in (-30, -90):
        yield f"exp {seconds}", mint.token(exp=now + seconds)
    for name in ("nbf", "iat"):
        for seconds in (30, 90):
            yield f"{name} +{seconds}", mint.token(**{name: now + seconds})
        yield f"no {name}", mint.token(**{name: REMOVED})
    yield "no exp", mint.token(exp=REMOVED)
    yield "exp null", mint.token(exp=None)
    yield "exp a fraction", mint.token(exp=now + 3600.9)
    yield "exp a string", mint.token(exp=str(now + 3600))
    yield "exp true", mint.token(exp=True)
    yield "exp negative", mint.token(exp=-1)
    yield "exp infinite", mint.raw(header, claims.replace(f'"exp": {now + 3600}'.encode(), b'"exp": Infinity'))
    yield "aud a string", mint.token(aud=ISSUER)
    yield "aud of another", mint.token(aud=["other"])
    yield "aud of two", mint.token(aud=["other", ISSUER])
    yield "no aud", mint.token(aud=REMOVED)
    yield "aud empty", mint.token(aud=[])
    yield "aud null", mint.token(aud=None)
    yield "aud numbers", mint.token(aud=[1])
    yield "aud an object", mint.token(aud={})
    yield "no iss", mint.token(iss=REMOVED)
    yield "iss of another", mint.token(iss="https://other.example")
    yield "iss with a slash", mint.token(iss=f"{ISSUER}/")
    yield "iss a list", mint.token(iss=[ISSUER])
    yield "iss in capitals", mint.raw(header, claims.replace(b'"iss"', b'"ISS"'))
    yield "duplicate iss", mint.raw(header, b'{"iss":"x",' + claims[1:])
    yield "duplicate sub", mint.raw(header, b'{"sub":"x",' + claims[1:])
    yield "duplicate nested key", mint.raw(header, claims.replace(b'"namespace":', b'"namespace": "x", "namespace":'))
    yield "unknown claim", mint.token(more={"a": [1, 2]})
    yield "claims followed by text", mint.raw(header, claims + b"x")
    yield "claims a list", mint.raw(header, b"[]")
    yield "claims null", mint.raw(header, b"null")
    yield "sub of another", mint.token(sub="system:serviceaccount:default:other")
    yield "no sub", mint.token(sub=REMOVED)
    yield "no jti", mint.token(jti=REMOVED)
    yield "jti a number", mint.token(jti=1)
    bound = mint.claims["kubernetes.io"]
    account = bound["serviceaccount"]

    def kubernetes(**changes: Any) -> str:
        return mint.token(**{"kubernetes.io": bound | changes})

    yield "no kubernetes.io", mint.token(**{"kubernetes.io": REMOVED})
    yield "kubernetes.io a string", mint.token(**{"kubernetes.io": "x"})
    yield "another namespace", kubernetes(namespace="kube-system")
    yield "no namespace", kubernetes(namespace="")
    yield "account of another uid", kubernetes(serviceaccount={"name": "robot", "uid": "x"})
    yield "account without uid", kubernetes(serviceaccount={"name": "robot"})
    yield "account that does not exist", kubernetes(serviceaccount={"name": "no", "uid": account["uid"]})
    for kind in ("pod", "secret", "node"):
        yield f"{kind} that does not exist", kubernetes(**{kind: {"name": "no", "uid": "x"}})
        yield f"{kind} null", kubernetes(**{kind: None})
    yield "warnafter in the past", kubernetes(warnafter=now - 100)
    yield "warnafter a string", kubernetes(warnafter="soon")
    legacy = "kubernetes.io/serviceaccount/"
    old = {
        f"{legacy}namespace": "default",
        f"{legacy}secret.name": "no",
        f"{legacy}service-account.name": "robot",
        f"{legacy}service-account.uid": account["uid"],
    }
    yield "legacy token without its Secret", mint.token(iss="kubernetes/serviceaccount", **old)
    for name, claim in (("secret", "secret.name"), ("uid", "service-account.uid"), ("namespace", "namespace")):
        fewer = {**old, f"{legacy}{claim}": REMOVED}
        yield f"legacy token without {name}", mint.token(iss="kubernetes/serviceaccount", **fewer)
    yield (
        "legacy token of another subject",
        mint.token(iss="kubernetes/serviceaccount", **{**old, "sub": "system:serviceaccount:default:x"}),
    )
