"""Which rule of an audit policy a request falls under, and what is wrong with a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.audit.policy import LEVELS, PolicyError, load, parse
from ostinato.server.request import User

JANE = User("jane", groups=("dev",))


def _policy(*rules: Any, **more: Any) -> Any:
    return parse({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more})


def _level(rule: Any, asked: RequestAttributes, user: User | None = JANE) -> str:
    return LEVELS[_policy({"level": "Metadata", **rule}).evaluate(user, asked).level]


PODS = RequestAttributes("get", "", "pods", "", "default", "a")
LOGS = PODS._replace(subresource="log")
DEPLOYMENTS = RequestAttributes("list", "apps", "deployments", "", "default")


@pytest.mark.parametrize(
    ("rule", "asked", "matches"),
    [
        ({}, PODS, True),
        ({"users": ["jane"]}, PODS, True),
        ({"users": ["bob"]}, PODS, False),
        ({"userGroups": ["ops", "dev"]}, PODS, True),
        ({"userGroups": ["ops"]}, PODS, False),
        ({"verbs": ["get"]}, PODS, True),
        ({"verbs": ["list"]}, PODS, False),
        ({"namespaces": ["default"]}, PODS, True),
        ({"namespaces": [""]}, PODS, False),
        ({"namespaces": [""]}, RequestAttributes("get", "", "nodes", name="n"), True),
        ({"resources": [{"group": ""}]}, PODS, True),
        ({"resources": [{"group": "apps"}]}, PODS, False),
        ({"resources": [{"group": "*"}]}, DEPLOYMENTS, True),
        ({"resources": [{"group": "", "resources": ["pods"]}]}, PODS, True),
        ({"resources": [{"group": "", "resources": ["pods"]}]}, LOGS, False),
        ({"resources": [{"group": "", "resources": ["pods/log"]}]}, LOGS, True),
        ({"resources": [{"group": "", "resources": ["pods/*"]}]}, LOGS, True),
        ({"resources": [{"group": "", "resources": ["pods/*"]}]}, PODS, True),
        ({"resources": [{"group": "", "resources": ["*/log"]}]}, LOGS, True),
        ({"resources": [{"group": "", "resources": ["*/log"]}]}, PODS, False),
        ({"resources": [{"group": "", "resources": ["*"]}]}, LOGS, True),
        ({"resources": [{"group": "", "resources": ["pods"], "resourceNames": ["a"]}]}, PODS, True),
        ({"resources": [{"group": "", "resources": ["pods"], "resourceNames": ["b"]}]}, PODS, False),
        ({"resources": [{"group": ""}]}, RequestAttributes("get", path="/version"), False),
        ({"nonResourceURLs": ["/version"]}, RequestAttributes("get", path="/version"), True),
        ({"nonResourceURLs": ["/healthz*"]}, RequestAttributes("get", path="/healthz/etcd"), True),
        ({"nonResourceURLs": ["*"]}, RequestAttributes("get", path="/anything"), True),
        ({"nonResourceURLs": ["*"]}, PODS, False),
    ],
)
def test_a_rule_matches_its_users_verbs_and_resources(rule: Any, asked: RequestAttributes, matches: bool) -> None:
    assert _level(rule, asked) == ("Metadata" if matches else "None")


def test_a_rule_for_users_does_not_match_strangers() -> None:
    assert _level({"users": ["jane"]}, PODS, None) == "None"
    assert _level({"userGroups": ["dev"]}, PODS, None) == "None"
    assert _level({}, PODS, None) == "Metadata"


def test_the_first_rule_that_matches_counts() -> None:
    policy = _policy({"level": "None", "verbs": ["get"]}, {"level": "Request"})
    assert LEVELS[policy.evaluate(JANE, PODS).level] == "None"
    assert LEVELS[policy.evaluate(JANE, DEPLOYMENTS).level] == "Request"


def test_a_rule_adds_to_the_stages_that_all_omit_and_overrides_managed_fields() -> None:
    rule = {"level": "Request", "omitStages": ["Panic"], "omitManagedFields": False}
    config = _policy(rule, omitStages=["RequestReceived"], omitManagedFields=True).evaluate(JANE, PODS)
    assert config.omitted_stages == {"Panic", "RequestReceived"}
    assert not config.omit_managed_fields


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([], "the policy has no rules"),
        ([{}], r"rules\[0\].level: Required value"),
        ([{"level": "All"}], r'rules\[0\].level: Unsupported value: "All": supported values: "None"'),
        ([{"level": "None", "users": "jane"}], r"rules\[0\].users"),
        ([{"level": "None", "user": ["jane"]}], "unknown field `user`"),
        ([{"level": "None", "omitStages": ["End"]}], r"rules\[0\].omitStages\[0\]: Invalid value: \"End\""),
        ([{"level": "None", "nonResourceURLs": ["version"]}], "must begin with a '/' character"),
        ([{"level": "None", "nonResourceURLs": ["/a*b"]}], "must be the final character"),
        ([{"level": "None", "nonResourceURLs": ["/a"], "namespaces": ["b"]}], "cannot apply to both"),
        ([{"level": "None", "resources": [{"group": "apps/v1"}]}], r"resources.group: Invalid value"),
        ([{"level": "None", "resources": [{"resourceNames": ["a"]}]}], "requires at least one resource"),
    ],
)
def test_a_policy_that_is_wrong_is_refused_with_the_field(rules: Any, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        _policy(*rules)


def test_a_file_that_is_no_policy_is_refused_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    with pytest.raises(PolicyError, match=r"policy.yaml: cannot be read: No such file"):
        load(file)
    file.write_text("apiVersion: v1\nkind: Pod\n")
    with pytest.raises(PolicyError, match=r"policy.yaml: want kind Policy of audit.k8s.io/v1, got Pod of v1"):
        load(file)
