"""Filters, differences, resources: what a handler is called for, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.gvk import GroupVersion, GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.client.discovery.discovery import ApiVersion, Catalogue
from ostinato.frontends.handlers.objects.diffs import diff, essence, reduced
from ostinato.frontends.handlers.objects.filters import ABSENT, PRESENT, Change, Filters, all_, any_, none_, not_
from ostinato.frontends.handlers.objects.patching import Patch, merged, pruned
from ostinato.frontends.handlers.objects.views import Body, parse_path
from ostinato.frontends.handlers.resources import EVERYTHING, NamedKinds, Resources
from ostinato.kinds.core_v1 import ConfigMap

BODY = {"metadata": {"labels": {"tier": "web"}, "annotations": {"note": "x"}}, "spec": {"size": 5, "deep": {"a": 1}}}


def is_web(value: Any, **_: Any) -> bool:
    return bool(value == "web")


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"labels": {"tier": "web"}}, True),
        ({"labels": {"tier": "db"}}, False),
        ({"labels": {"tier": PRESENT}}, True),
        ({"labels": {"other": PRESENT}}, False),
        ({"labels": {"other": ABSENT}}, True),
        ({"labels": {"tier": ABSENT}}, False),
        ({"labels": {"tier": is_web}}, True),
        ({"labels": {"other": is_web}}, False),
        ({"labels": {"tier": "web", "other": "x"}}, False),
        ({"annotations": {"note": "x"}}, True),
        ({"annotations": {"note": "y"}}, False),
        ({"field": ("spec", "size")}, True),
        ({"field": ("spec", "nothing")}, False),
        ({"field": ("spec", "size"), "value": 5}, True),
        ({"field": ("spec", "size"), "value": 6}, False),
        ({"field": ("spec", "nothing"), "value": ABSENT}, True),
        ({"field": ("spec", "size"), "value": lambda value, **_: value > 4}, True),
        ({"when": lambda spec, **_: spec["size"] == 5}, True),
        ({"when": lambda **_: False}, False),
        ({"when": all_([lambda **_: True, not_(lambda **_: False)])}, True),
        ({"when": any_([lambda **_: False, lambda **_: False])}, False),
        ({"when": none_([lambda **_: False])}, True),
    ],
)
def test_an_object_matches_its_filters(filters: dict[str, Any], expected: bool) -> None:
    change = Change(BODY, lambda: {"spec": BODY["spec"]})
    assert Filters(**filters).match_object(change) is expected


@pytest.mark.parametrize(
    ("filters", "old", "new", "object_matches", "change_matches"),
    [
        ({}, 1, 2, True, True),
        ({}, 1, 1, True, False),
        ({}, None, 1, True, True),
        ({"value": 1}, 1, 2, True, True),
        ({"value": 2}, 1, 2, True, True),
        ({"value": 3}, 1, 2, False, True),
        ({"old": 1}, 1, 2, True, True),
        ({"old": 2}, 1, 2, True, False),
        ({"new": 2}, 1, 2, True, True),
        ({"new": 1}, 1, 2, True, False),
        ({"old": ABSENT}, None, 2, True, True),
        ({"old": PRESENT, "new": ABSENT}, 1, None, True, True),
        ({"new": lambda value, **_: value is None}, 1, None, True, True),
    ],
)
def test_a_change_of_a_field_matches(
    filters: dict[str, Any], old: Any, new: Any, object_matches: bool, change_matches: bool
) -> None:
    def of(value: Any) -> dict[str, Any]:
        return {"spec": {} if value is None else {"size": value}}

    change = Change(of(new), dict, of(old), of(new))
    filtered = Filters(field=("spec", "size"), **filters)
    assert filtered.match_object(change) is object_matches
    assert filtered.match_change(change, needs_change=True) is change_matches


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"labels": "tier=web"}, "labels: 'tier=web' is not a dict"),
        ({"labels": {"tier": None}}, "tier: None is not a value; write PRESENT or ABSENT"),
        ({"value": 5}, "need a field"),
        ({"field": ("spec",), "value": 5, "new": 5}, "cannot be combined"),
        ({"when": 5}, "when: 5 is not a plain function"),
    ],
)
def test_wrong_filters_are_reported(given: dict[str, Any], problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        Filters(**given)


def test_differences_have_operations_paths_and_values() -> None:
    old, new = {"a": 1, "b": {"c": [1], "d": 2}, "e": 3}, {"a": 1, "b": {"c": [1, 2], "f": 4}, "e": None}
    found = diff(old, new)
    assert sorted(found, key=str) == [
        ("add", ("b", "f"), None, 4),
        ("change", ("b", "c"), [1], [1, 2]),
        ("remove", ("b", "d"), 2, None),
        ("remove", ("e",), 3, None),
    ]
    assert reduced(found, ("b", "c")) == (("change", (), [1], [1, 2]),)
    assert sorted(reduced(found, ("b",))) == [
        ("add", ("f",), None, 4),
        ("change", ("c",), [1], [1, 2]),
        ("remove", ("d",), 2, None),
    ]
    assert reduced(diff(None, {"spec": {"x": 1}}), ("spec", "x")) == (("add", (), None, 1),)
    assert diff(old, old) == ()


def test_the_essence_is_what_users_set() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {
            "name": "a",
            "labels": {"x": "y"},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "kopf.zalando.org/last-handled-configuration": "{}",
                "own": "1",
            },
            "finalizers": ["f"],
        },
        "data": {"k": "v"},
        "status": {"phase": "Ready", "other": 1},
    }
    assert essence(body) == {"metadata": {"labels": {"x": "y"}, "annotations": {"own": "1"}}, "data": {"k": "v"}}
    assert essence(body, [("status", "phase")])["status"] == {"phase": "Ready"}
    assert essence({"metadata": {"name": "a"}, "spec": {}}) == {"spec": {}}


def test_a_patch_has_only_what_was_set() -> None:
    patch = Patch()
    assert not patch
    assert not patch.spec, "reading a part sets nothing"
    assert not patch
    patch.spec["size"] = 5
    patch.meta.labels["tier"] = None
    patch.status["empty"] = {}
    assert pruned(patch) == {"spec": {"size": 5}, "metadata": {"labels": {"tier": None}}, "status": {"empty": {}}}
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}) == {"a": {"b": None, "c": 2}}


def test_views_are_read_only_mappings() -> None:
    body = Body(BODY)
    assert body.spec["size"] == 5
    assert body.metadata.labels == {"tier": "web"}
    assert dict(body.status) == {}
    assert body.spec.get("nothing", 1) == 1
    with pytest.raises(TypeError):
        body.spec["size"] = 6  # type: ignore[index]


@pytest.mark.parametrize("wrong", ["", "spec..size", 5, ["spec", ""]])
def test_a_field_path_is_checked(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="field"):
        parse_path(wrong)


def info(group: str, version: str, kind: str, plural: str, *short: str, categories: tuple[str, ...] = ()) -> KindInfo:
    return KindInfo(
        GroupVersionKind(group, version, kind),
        plural,
        kind.lower(),
        namespaced=True,
        short_names=short,
        categories=categories,
    )


SITES_V2 = info("example.dev", "v2", "Site", "sites", "st", categories=("all",))
SITES_V1 = info("example.dev", "v1", "Site", "sites", "st", categories=("all",))
PODS = info("", "v1", "Pod", "pods", "po", categories=("all",))
METRICS = info("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")
EVENTS = info("", "v1", "Event", "events", "ev")


def catalogue() -> Catalogue:
    class Served:
        def __init__(self, info: KindInfo) -> None:
            self.info, self.verbs = info, ("get", "list", "watch", "patch")

    versions: Any = [
        ApiVersion(GroupVersion(each.gvk.group, each.gvk.version), (Served(each),))  # type: ignore[arg-type]
        for each in (METRICS, PODS, EVENTS, SITES_V2, SITES_V1)
    ]
    return Catalogue(tuple(versions), {})


@pytest.mark.parametrize(
    ("given", "keywords", "found"),
    [
        (["sites"], {}, [SITES_V2]),
        (["Site"], {}, [SITES_V2]),
        (["site"], {}, [SITES_V2]),
        (["st"], {}, [SITES_V2]),
        (["sites.example.dev"], {}, [SITES_V2]),
        (["sites.v1.example.dev"], {}, [SITES_V1]),
        (["example.dev", "sites"], {}, [SITES_V2]),
        (["example.dev/v1", "sites"], {}, [SITES_V1]),
        (["example.dev", "v1", "sites"], {}, [SITES_V1]),
        (["pods"], {}, [PODS]),
        (["v1", "pods"], {}, [PODS]),
        (["", "v1", "pods"], {}, [PODS]),
        (["metrics.k8s.io", "pods"], {}, [METRICS]),
        (["events"], {}, [EVENTS]),
        ([], {"kind": "Site"}, [SITES_V2]),
        ([], {"shortcut": "po"}, [PODS]),
        ([], {"category": "all"}, [PODS, SITES_V2]),
        ([], {"group": "example.dev"}, [SITES_V2]),
        ([EVERYTHING], {}, [METRICS, PODS, SITES_V2]),
        (["other"], {}, []),
    ],
)
def test_kinds_are_found_by_name(given: list[Any], keywords: dict[str, str], found: list[KindInfo]) -> None:
    wanted = Resources.of(*given, **keywords)
    assert NamedKinds(wanted=(wanted,)).select(catalogue(), {}) == found


def test_a_class_is_its_kind() -> None:
    wanted = Resources.of(ConfigMap)
    assert wanted.view is not None
    assert wanted.view.gvk == GroupVersionKind("", "v1", "ConfigMap")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "a handler needs a kind"),
        (["a", "b", "c", "d"], "does not name a kind"),
        ([5], "an int is not a kind"),
        (["example.dev", 5], "does not name a kind"),
    ],
)
def test_wrong_kinds_are_reported(given: list[Any], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Resources.of(*given)
