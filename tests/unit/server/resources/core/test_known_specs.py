from __future__ import annotations

from typing import Any

from ostinato.server.resources.core.pods.known_specs import KnownSpecs, spec_key


def pod(volume: str, mounted: str = "", **metadata: Any) -> dict[str, Any]:
    mount = {"name": mounted or volume, "mountPath": "/token"}
    containers = [{"name": "main", "image": "web", "volumeMounts": [mount]}]
    return {"metadata": metadata, "spec": {"containers": containers, "volumes": [{"name": volume}]}}


def test_pods_whose_token_volumes_differ_in_their_random_letters_have_the_same_key() -> None:
    assert spec_key(pod("kube-api-access-abcde")) == spec_key(pod("kube-api-access-12345"))


def test_a_mount_of_another_volume_has_another_key() -> None:
    keys = {
        spec_key(pod("kube-api-access-abcde")),
        spec_key(pod("kube-api-access-abcde", "kube-api-access-12345")),
        spec_key(pod("kube-api-access-abcde", "data")),
        spec_key(pod("kube-api-access-abcdef")),
        spec_key(pod("kube-api-access-ABCDE")),
        spec_key(pod("data")),
    }
    assert len(keys) == 6


def test_a_volume_that_has_the_same_name_as_the_token_volume_has_another_key() -> None:
    twice, other = pod("kube-api-access-abcde"), pod("kube-api-access-abcde")
    twice["spec"]["volumes"].append({"name": "kube-api-access-abcde"})
    other["spec"]["volumes"].append({"name": "kube-api-access-12345"})
    assert spec_key(twice) != spec_key(other)


def test_the_text_that_stands_for_the_name_cannot_be_sent() -> None:
    assert spec_key(pod("\x01")) != spec_key(pod("kube-api-access-abcde"))


def test_annotations_are_a_part_of_the_key_and_names_are_not() -> None:
    assert spec_key(pod("data", annotations={"a": "1"})) != spec_key(pod("data", annotations={"a": "2"}))
    assert spec_key(pod("data", name="a")) == spec_key(pod("data", name="b"))


def test_a_pod_with_a_claim_that_is_named_after_it_has_no_key() -> None:
    named = pod("data")
    named["spec"]["volumes"][0]["ephemeral"] = {}
    assert spec_key(named) == b""


def test_specs_that_were_not_used_for_longest_are_forgotten() -> None:
    known = KnownSpecs()
    known.add(b"kept")
    for i in range(300):
        known.add(b"%d" % i)
        assert known.has(b"kept")
    assert known.has(b"299")
    assert not known.has(b"0")
    assert not known.has(b"")
