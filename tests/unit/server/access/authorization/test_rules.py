"""Rules: what each allows, and whether some cover others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.roles import Decision, UserRules
from ostinato.server.access.authorization.rules import MOST_PARTS, Rule, TooManyParts, missing, uncovered

PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


@pytest.mark.parametrize(
    ("rule", "asked", "allowed"),
    [
        (PODS, RequestAttributes("get", resource="pods", name="p"), True),
        (PODS, RequestAttributes("list", resource="pods"), True),
        (PODS, RequestAttributes("delete", resource="pods"), False),
        (PODS, RequestAttributes("get", resource="secrets"), False),
        (PODS, RequestAttributes("get", "apps", "pods"), False),
        (PODS, RequestAttributes("get", resource="pods", subresource="log"), False),
        (ALL, RequestAttributes("frobnicate", "example.com", "things", "parts"), True),
        (ALL, RequestAttributes("get", path="/metrics"), False),
        ({**PODS, "resources": ["pods/log"]}, RequestAttributes("get", resource="pods", subresource="log"), True),
        ({**PODS, "resources": ["pods/log"]}, RequestAttributes("get", resource="pods"), False),
        ({**PODS, "resources": ["*/status"]}, RequestAttributes("get", resource="pods", subresource="status"), True),
        ({**PODS, "resources": ["*/status"]}, RequestAttributes("get", resource="pods"), False),
        ({**PODS, "resources": ["pods/*"]}, RequestAttributes("get", resource="pods", subresource="log"), False),
        ({**PODS, "resourceNames": ["mine"]}, RequestAttributes("get", resource="pods", name="mine"), True),
        ({**PODS, "resourceNames": ["mine"]}, RequestAttributes("get", resource="pods", name="other"), False),
        ({**PODS, "resourceNames": ["mine"]}, RequestAttributes("list", resource="pods"), False),
        ({"nonResourceURLs": ["/logs/*"], "verbs": ["get"]}, RequestAttributes("get", path="/logs/x"), True),
        ({"nonResourceURLs": ["/logs/*"], "verbs": ["get"]}, RequestAttributes("get", path="/logs"), False),
        ({"nonResourceURLs": ["/logs"], "verbs": ["get"]}, RequestAttributes("get", path="/logsx"), False),
        ({"nonResourceURLs": ["*"], "verbs": ["get"]}, RequestAttributes("get", path="/"), True),
        ({"nonResourceURLs": ["*"], "verbs": ["get"]}, RequestAttributes("put", path="/"), False),
        ({}, RequestAttributes("get", resource="pods"), False),
    ],
)
def test_a_rule_allows_its_verbs_and_resources(
    rule: dict[str, list[str]], asked: RequestAttributes, allowed: bool
) -> None:
    assert Rule(rule).allows(asked) is allowed


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        ([PODS], [PODS], []),
        ([ALL], [PODS, {**ALL, "resources": ["*/scale"]}], []),
        ([ALL], [{"nonResourceURLs": ["/x"], "verbs": ["get"]}], ['{NonResourceURLs:["/x"], Verbs:["get"]}']),
        ([PODS], [ALL], ['{APIGroups:["*"], Resources:["*"], Verbs:["*"]}']),
        (
            [{**PODS, "verbs": ["get"]}],
            [{**PODS, "verbs": ["get", "list", "watch"]}],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}'],
        ),
        ([{**PODS, "verbs": ["get"]}, {**PODS, "verbs": ["list"]}], [PODS], []),
        ([PODS], [{**PODS, "resourceNames": ["a"]}], []),
        (
            [{**PODS, "resourceNames": ["a"]}],
            [{**PODS, "resourceNames": ["a", "b"]}],
            ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get" "list"]}'],
        ),
        (
            [{**PODS, "resourceNames": [""]}],
            [PODS],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'],
        ),
        (
            [{"nonResourceURLs": ["/logs/*"], "verbs": ["get"]}],
            [{"nonResourceURLs": ["/logs/a", "/logs/*", "/log"], "verbs": ["get", "put"]}],
            [
                '{NonResourceURLs:["/log"], Verbs:["get"]}',
                '{NonResourceURLs:["/log"], Verbs:["put"]}',
                '{NonResourceURLs:["/logs/*"], Verbs:["put"]}',
                '{NonResourceURLs:["/logs/a"], Verbs:["put"]}',
            ],
        ),
    ],
)
def test_rules_cover_others_part_by_part(
    held: list[dict[str, list[str]]], wanted: list[dict[str, list[str]]], missing: list[str]
) -> None:
    assert uncovered(map(Rule, held), map(Rule, wanted)) == missing


def test_rules_that_name_too_much_are_not_compared() -> None:
    many = [str(i) for i in range(101)]
    assert len(many) ** 2 > MOST_PARTS
    with pytest.raises(TooManyParts):
        uncovered([], [Rule({"apiGroups": many, "resources": many, "verbs": ["get"]})])


def some(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2)


RULES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"verbs": some("get", "*"), "apiGroups": some("", "apps", "*"), "resources": some("pods", "*", "*/log")},
            optional={"resourceNames": some("x", "")},
        ),
        st.fixed_dictionaries({"verbs": some("get", "*"), "nonResourceURLs": some("/x", "/x/*", "*")}),
    ),
    max_size=4,
)
QUESTIONS = st.lists(
    st.one_of(
        st.builds(
            RequestAttributes,
            st.sampled_from(["get", "list"]),
            st.sampled_from(["", "apps"]),
            st.sampled_from(["pods", "nodes"]),
            st.sampled_from(["", "log"]),
            name=st.sampled_from(["", "x", "y"]),
        ),
        st.builds(RequestAttributes, st.just("get"), path=st.sampled_from(["/x", "/x/y", "/y"])),
    ),
    min_size=2,
    max_size=6,
)


@given(RULES, QUESTIONS)
def test_the_first_matching_rule_decides_with_and_without_the_cache(
    raw: Any, questions: list[RequestAttributes]
) -> None:
    held = UserRules()
    held.rules = [(Rule(each), Decision(allowed=True, reason=str(i))) for i, each in enumerate(raw)]
    for asked in questions:
        first = next((decision for rule, decision in held.rules if rule.allows(asked)), None)
        assert held.decide(asked) == first


@given(RULES, RULES, QUESTIONS)
def test_covered_rules_allow_nothing_more(raw: Any, other: Any, questions: list[RequestAttributes]) -> None:
    held, wanted = [Rule(each) for each in raw], [Rule(each) for each in other]
    if not uncovered(held, wanted):
        for asked in questions:
            assert not any(rule.allows(asked) for rule in wanted) or any(rule.allows(asked) for rule in held)
    added = [Rule(each) for each in missing(held, wanted)]
    assert uncovered([*held, *added], wanted) == []
