"""AuthenticationConfigurations that are wrong, by name: what kube-apiserver says of each was recorded."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
ISSUER = {"url": "https://a.example", "audiences": ["kube"]}
MAPPINGS = {"username": {"claim": "sub", "prefix": ""}}


def _one(issuer: Json | None = None, mappings: Json | None = None, **more: Any) -> Json:
    return {"jwt": [{"issuer": ISSUER | (issuer or {}), "claimMappings": MAPPINGS | (mappings or {}), **more}]}


def _username(**fields: Any) -> Json:
    return _one(mappings={"username": fields})


def _extra(*extra: Json) -> Json:
    return _one(mappings={"extra": list(extra)})


CASES: dict[str, Json] = {
    "no url": _one({"url": ""}),
    "url of http": _one({"url": "http://a.example"}),
    "url with user": _one({"url": "https://u:p@a.example"}),
    "url with query": _one({"url": "https://a.example?x=1"}),
    "url with fragment": _one({"url": "https://a.example#x"}),
    "url of the server": _one({"url": "https://kubernetes.default.svc"}),
    "discovery url the same": _one({"discoveryURL": "https://a.example/"}),
    "discovery url of http": _one({"discoveryURL": "http://b.example"}),
    "no audiences": _one({"audiences": []}),
    "empty audience": _one({"audiences": [""]}),
    "audience twice": _one({"audiences": ["a", "a"], "audienceMatchPolicy": "MatchAny"}),
    "two audiences without policy": _one({"audiences": ["a", "b"]}),
    "unknown policy": _one({"audienceMatchPolicy": "MatchAll"}),
    "authority that is none": _one({"certificateAuthority": "nothing"}),
    "unknown egress selector": _one({"egressSelectorType": "etcd"}),
    "issuer twice": {"jwt": [*_one()["jwt"], *_one()["jwt"]]},
    "no username": _one(mappings={"username": {}}),
    "username twice": _username(claim="sub", prefix="", expression="claims.sub"),
    "username without prefix": _username(claim="sub"),
    "username prefix with expression": _username(expression="claims.sub", prefix="x"),
    "username does not compile": _username(expression="claims.sub +"),
    "username of an unknown variable": _username(expression="user.username"),
    "email without verification": _username(expression="claims.email"),
    "groups twice": _one(mappings={"groups": {"claim": "g", "prefix": "", "expression": "claims.g"}}),
    "groups without prefix": _one(mappings={"groups": {"claim": "g"}}),
    "uid twice": _one(mappings={"uid": {"claim": "g", "expression": "claims.g"}}),
    "uid does not compile": _one(mappings={"uid": {"expression": "("}}),
    "extra without key": _extra({"key": "", "valueExpression": "claims.a"}),
    "extra key without domain": _extra({"key": "a", "valueExpression": "claims.a"}),
    "extra key in capitals": _extra({"key": "a.example/A", "valueExpression": "claims.a"}),
    "extra key of Kubernetes": _extra({"key": "x.k8s.io/a", "valueExpression": "claims.a"}),
    "extra key of a bad domain": _extra({"key": "A_/a", "valueExpression": "claims.a"}),
    "extra key twice": _extra(*[{"key": "a.example/a", "valueExpression": "claims.a"}] * 2),
    "extra without value": _extra({"key": "a.example/a", "valueExpression": ""}),
    "rule twice": _one(claimValidationRules=[{"claim": "a", "requiredValue": "b"}] * 2),
    "rule of nothing": _one(claimValidationRules=[{}]),
    "rule of both": _one(claimValidationRules=[{"claim": "a", "expression": "true"}]),
    "rule with claim and message": _one(claimValidationRules=[{"claim": "a", "message": "m"}]),
    "rule with expression and value": _one(claimValidationRules=[{"expression": "true", "requiredValue": "m"}]),
    "rule expression twice": _one(claimValidationRules=[{"expression": "true"}] * 2),
    "rule that gives a string": _one(claimValidationRules=[{"expression": "'a'"}]),
    "rule that gives anything": _one(claimValidationRules=[{"expression": "claims.a"}]),
    "user rule without expression": _one(userValidationRules=[{"message": "m"}]),
    "user rule twice": _one(userValidationRules=[{"expression": "true"}] * 2),
    "user rule of an unknown field": _one(userValidationRules=[{"expression": "user.name == 'a'"}]),
    "anonymous disabled with conditions": {"anonymous": {"enabled": False, "conditions": [{"path": "/livez"}]}},
}


def text(case: Json) -> str:
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    return json.dumps(kind | case)
