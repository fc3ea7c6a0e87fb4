from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.api.validation.names import name_is_dns_subdomain
from ostinato.kinds.apps_v1 import Deployment, ReplicaSet
from ostinato.kinds.core_v1 import PodTemplateSpec
from ostinato.plane.controllers.workloads.deployment.revisions import (
    HASH,
    HISTORY,
    REVISION,
    new_annotations,
    new_replica_set,
    next_revision,
    number_in,
    revision_of,
    same_template,
    template_hash,
)


def template(image: str = "app:1", cpu: str = "1", **labels: str) -> PodTemplateSpec:
    container = {"name": "app", "image": image, "resources": {"requests": {"cpu": cpu}}}
    document = {"metadata": {"labels": {"app": "web", **labels}}, "spec": {"containers": [container]}}
    return from_dict(PodTemplateSpec, document)


def deployment(name: str = "web", **annotations: str) -> Deployment:
    metadata = {"name": name, "namespace": "shop", "uid": "u-1", "annotations": annotations}
    spec: dict[str, Any] = {
        "replicas": 3,
        "selector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}],
        },
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app"}]}},
        "minReadySeconds": 7,
    }
    return from_dict(Deployment, {"metadata": metadata, "spec": spec})


def replica_set(**annotations: str) -> ReplicaSet:
    document = {"metadata": {"name": "a", "annotations": annotations}, "spec": {"selector": {}}}
    return from_dict(ReplicaSet, document)


def test_templates_are_equal_regardless_of_their_hash_label() -> None:
    assert same_template(template(), template(**{HASH: "abc"}))
    assert same_template(template(**{HASH: "abc"}), template(**{HASH: "def"}))
    assert same_template(template(cpu="1"), template(cpu="1000m")), "two ways to write one amount"
    assert not same_template(template(), template("app:2"))
    assert not same_template(template(), template(tier="front"))


def test_a_hash_is_the_same_for_the_same_template_and_another_for_another() -> None:
    codes = {template_hash(template(f"app:{n}"), 0) for n in range(500)}
    assert len(codes) == 500
    assert template_hash(template(), 0) == template_hash(template(), 0)
    assert template_hash(template(), 0) != template_hash(template(), 1)
    assert all(set(code) <= set("bcdfghjklmnpqrstvwxz2456789") and len(code) <= 10 for code in codes)


@pytest.mark.parametrize("name", ["web", "w" * 253, f"{'w' * 240}.{'x' * 12}"])
def test_the_name_of_a_replica_set_is_truncated(name: str) -> None:
    made = new_replica_set(deployment(name), 0)
    code = made.metadata.labels[HASH]
    assert made.metadata.name.endswith(f"-{code}")
    assert name.startswith(made.metadata.name.removesuffix(f"-{code}"))
    assert name_is_dns_subdomain(made.metadata.name) == []


def test_a_new_replica_set_selects_what_the_deployment_selects_and_its_own_hash() -> None:
    wanted = deployment()
    made = new_replica_set(wanted, 0)
    code = made.metadata.labels[HASH]
    assert made.spec.template is not None
    assert made.spec.template.metadata.labels == made.metadata.labels == {"app": "web", HASH: code}
    assert made.spec.selector.match_labels == {"app": "web", HASH: code}
    assert made.spec.selector.match_expressions == wanted.spec.selector.match_expressions
    assert (made.spec.replicas, made.spec.min_ready_seconds, made.metadata.namespace) == (0, 7, "shop")
    assert HASH not in wanted.spec.template.metadata.labels, "the Deployment is as it was"


@pytest.mark.parametrize(
    ("text", "answer"), [("", None), ("12", 12), ("x", None), ("-3", -3), ("9" * 30, None), ("²", None), ("1 ", None)]
)
def test_a_revision_is_a_number(text: str, answer: int | None) -> None:
    assert revision_of(replica_set(**{REVISION: text})) == answer


def test_the_next_revision_is_one_more_than_all_others() -> None:
    assert next_revision([]) == 1
    assert next_revision([replica_set(**{REVISION: text}) for text in ("2", "7", "x")] + [replica_set()]) == 8


@pytest.mark.parametrize(
    ("text", "answer"), [("5", 5), ("-5", None), ("", None), (str(2**31), None), (str(2**31 - 1), 2**31 - 1)]
)
def test_a_count_is_not_negative_and_has_32_bits(text: str, answer: int | None) -> None:
    assert number_in(replica_set(count=text), "count") == answer


def test_annotations_are_copied_except_reserved_ones() -> None:
    wanted = deployment(**{"team": "blue", REVISION: "9", "kubectl.kubernetes.io/last-applied-configuration": "{}"})
    assert new_annotations(wanted, {}, 1) == {"team": "blue", REVISION: "1"}
    assert new_annotations(wanted, {"own": "x", REVISION: "1"}, 1) == {"team": "blue", "own": "x", REVISION: "1"}


def test_the_revisions_that_a_set_had_are_kept() -> None:
    found = new_annotations(deployment(), {REVISION: "1"}, 3)
    assert found == {REVISION: "3", HISTORY: "1"}
    assert new_annotations(deployment(), found, 6) == {REVISION: "6", HISTORY: "1,3"}
    assert new_annotations(deployment(), found, 2) == found, "it is the newest already"
    odd = {REVISION: "x"}
    assert new_annotations(deployment(), odd, 2) == odd, "what is no number is left alone"


def test_a_long_revision_history_is_truncated() -> None:
    history = ",".join(str(number) for number in range(10_000, 10_333))
    found = new_annotations(deployment(), {REVISION: "20000", HISTORY: history}, 20_001)[HISTORY]
    assert len(found) <= 2000
    assert found.endswith(",10332,20000")
    assert not found.startswith("10000,")
