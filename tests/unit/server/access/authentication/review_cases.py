"""Answers of a token review backend, by the token: what kube-apiserver makes of each was recorded."""

from __future__ import annotations

import json
from typing import Any

Reply = tuple[int, dict[str, Any], bytes]
JANE = {"username": "jane", "uid": "u-1", "groups": ["dev"], "extra": {"example.com/a": ["1"]}}


def _review(code: int = 200, /, **status: Any) -> Reply:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}
    return code, {}, json.dumps(review).encode()


CASES: dict[str, Reply] = {
    "known": _review(authenticated=True, user=JANE),
    "known-with-201": _review(201, authenticated=True, user=JANE),
    "known-without-a-name": _review(authenticated=True, user={}),
    "known-as-anonymous": _review(authenticated=True, user={"username": "system:anonymous"}),
    "known-for-this-server": _review(
        authenticated=True, user=JANE, audiences=["https://kubernetes.default.svc", "other"]
    ),
    "known-for-another": _review(authenticated=True, user=JANE, audiences=["other"]),
    "known-with-an-error": _review(authenticated=True, user=JANE, error="but"),
    "unknown": _review(authenticated=False),
    "unknown-with-an-error": _review(authenticated=False, error="it expired"),
    "no-status": (200, {}, b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview"}'),
    "no-kind": (200, {}, b'{"status":{"authenticated":true,"user":{"username":"jane"}}}'),
    "another-version": (200, {}, b'{"apiVersion":"authentication.k8s.io/v1beta1","kind":"TokenReview","status":{}}'),
    "another-kind": (200, {}, b'{"apiVersion":"v1","kind":"Pod"}'),
    "a-status": (200, {}, b'{"apiVersion":"v1","kind":"Status","status":"Failure","message":"no"}'),
    "not-json": (200, {}, b"{"),
    "empty": (200, {}, b""),
    "redirect": (302, {"Location": "/other"}, b""),
    "forbidden": (403, {}, b"{}"),
    "not-found": (404, {}, b""),
    "authenticated-a-string": (200, {}, b'{"status":{"authenticated":"yes"}}'),
}
