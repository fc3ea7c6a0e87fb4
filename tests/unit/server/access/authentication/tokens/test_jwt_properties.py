"""Whatever is given as a token: it is parsed, or refused as malformed, and has one spelling."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.access.authentication.mutations import b64

from ostinato.server.access.authentication.tokens import jwt

SEGMENT = st.text(alphabet="ABCabc019-_=+/.\n é", max_size=24)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(max_size=200) | st.lists(SEGMENT, min_size=1, max_size=5).map(".".join))
def test_any_text_is_a_token_or_malformed(text: str) -> None:
    try:
        jwt.parse(text)
    except jwt.MalformedToken:
        return


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=20))
def test_any_bytes_in_a_token_are_json_or_malformed(header: bytes, claims: bytes, signature: bytes) -> None:
    try:
        found = jwt.parse(f"{b64(header)}.{b64(claims)}.{b64(signature)}")
    except jwt.MalformedToken:
        return
    assert found.signature == signature


@given(st.dictionaries(st.sampled_from(["aud", "exp", "nbf", "iat", "sub"]), VALUES))
def test_claims_of_any_type_are_read_or_malformed(claims: dict[str, object]) -> None:
    try:
        found = jwt.parse(f"{b64(b'{}')}.{b64(json.dumps(claims).encode())}.")
        for name in ("exp", "nbf", "iat"):
            assert isinstance(jwt.numeric_date(found.claims, name), int | None)
        assert all(isinstance(each, str) for each in jwt.audiences(found.claims))
    except jwt.MalformedToken:
        return


@given(st.binary(max_size=40))
def test_bytes_have_one_spelling(data: bytes) -> None:
    text = jwt.encode(data).decode()
    assert jwt.decode(text) == data
    if text:
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        same = []
        for last in alphabet:
            try:
                same.append(jwt.decode(text[:-1] + last))
            except jwt.MalformedToken:
                continue
        assert same.count(data) == 1
