"""One etcd, two API servers: what kube-apiserver has stored this server serves, and the other way round.

`--real PROGRAM` or `OSTINATO_REAL` names a program that starts Kubernetes (`up DIR --bare`, `down DIR`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest
from bench.peers import Missing, kubernetes

from ostinato.etcd import EtcdSettings
from tests.cluster.shared_etcd.api import Api, Json, Key, path_of
from tests.cluster.shared_etcd.etcd import full, stored_values
from tests.cluster.shared_etcd.samples import NAMESPACE, definition, samples
from tests.cluster.shared_etcd.servers import SharedEtcd

JSON = ("--storage-media-type", "application/json")


@pytest.fixture(scope="module")
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedEtcd]:
    try:
        command = kubernetes(request.config.getoption("--real"))
    except Missing as missing:
        pytest.skip(f"no kube-apiserver: {missing}; or give --real PROGRAM")
    with SharedEtcd.start(command, tmp_path_factory.mktemp("shared")) as found:
        yield found


def create_definitions(api: Api, prefix: str) -> None:
    """Create the namespace and definitions, if they do not exist."""
    for path, made in (
        ("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}),
        (f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}}),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("widgets", "Widget")),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("gadgets", "Gadget")),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(f"{prefix}things", f"{prefix}Thing")),
    ):
        assert api.call("POST", path, made)[0] in (201, 409)


def create_all(api: Api, prefix: str) -> set[tuple[str, str]]:
    """Create objects of many kinds; return collections and names of those that the server accepts."""
    create_definitions(api, prefix)
    found: set[tuple[str, str]] = set()
    for path, made in samples(prefix):
        if api.call("POST", path, made)[0] == 201:
            found.add((path.rpartition("/")[2], made["metadata"]["name"]))
    for plural, kind in (("widgets", "Widget"), ("gadgets", "Gadget"), (f"{prefix}things", f"{prefix}Thing")):
        path = f"/apis/example.com/v1/namespaces/{NAMESPACE}/{plural}"
        until_served(api, path)
        spec = {"text": "é\u2028", "parts": [{"any": [1, 2.5, None, {"x": True}]}]}
        made = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": prefix}, "spec": spec}
        assert api.call("POST", path, made)[0] == 201
        found.add((plural, prefix))
    return found


def until_served(api: Api, path: str) -> None:
    while api.call("GET", path)[0] == 404:  # the definition is not established yet
        pass


def differences(one: dict[Key, Json], other: dict[Key, Json]) -> list[str]:
    """The objects that the other server does not show, or that differ although their resourceVersions are equal."""
    found = [f"missing: {key}" for key in one.keys() - other.keys()]
    for key in one.keys() & other.keys():
        mine, theirs = one[key], other[key]
        if mine["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"] and mine != theirs:
            found.append(f"{key}:\n  {mine}\n  {theirs}")
    return sorted(found)


def update_all(api: Api, names: set[tuple[str, str]], label: str) -> set[tuple[str, str]]:
    """Label the objects with a merge patch, annotate them with an apply; return those that have field managers."""
    updated: set[tuple[str, str]] = set()
    for key, obj in api.objects().items():
        plural = key[0].rpartition("/")[2]
        managers = {entry["manager"] for entry in obj["metadata"].get("managedFields", [])}
        if (plural, key[2]) not in names or plural == "events" or not managers:
            continue
        api.patch("merge", f"{path_of(key)}?fieldManager=merger-{label}", {"metadata": {"labels": {label: "merged"}}})
        config = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        config["metadata"] = {"name": key[2], "annotations": {f"example.com/{label}": "applied"}}
        applied = api.patch("apply", f"{path_of(key)}?fieldManager=applier-{label}", config)
        after = {entry["manager"] for entry in applied["metadata"]["managedFields"]}
        assert after == managers | {f"merger-{label}", f"applier-{label}"}, key
        assert applied["metadata"]["labels"][label] == "merged"
        updated.add((plural, key[2]))
    return updated


def test_an_etcd_is_switched_from_kube_apiserver_to_this_server_and_back(shared: SharedEtcd) -> None:
    with shared.kube_apiserver() as kube:
        theirs = create_all(kube, "kube")
        assert len(theirs) > 120
        assert len({plural for plural, _ in theirs}) >= 35
        shown = kube.objects()
    with shared.ostinato() as ours:
        assert differences(kept(shown), kept(ours.objects())) == []
        mine = create_all(ours, "own")
        assert len(update_all(ours, theirs, "own")) > 100
        as_protobuf = ours.objects()
    with shared.ostinato(*JSON) as ours:
        assert differences(kept(as_protobuf), kept(ours.objects())) == []
        mine |= create_all(ours, "json")
        assert len(mine) > 240
        shown = ours.objects()
    values = stored_values(EtcdSettings.parse(f"etcd://{shared.etcd}"))
    assert {values[f"/registry/configmaps/{NAMESPACE}/{name}-own"][:1] for name in ("own", "json")} == {b"k", b"{"}
    for name in ("kube", "own", "json"):
        for path in (f"secrets/{NAMESPACE}/{name}-own", f"example.com/gadgets/{NAMESPACE}/{name}"):
            assert values[f"/registry/{path}"].startswith(b"k8s:enc:aesgcm:v1:one:"), path
    with shared.kube_apiserver() as kube:
        found = kube.objects()
        assert differences(kept(shown), kept(found)) == []
        assert len(update_all(kube, mine, "kube")) > 200
        assert_allocated_once(found)
        create_all(kube, "again")
        assert_allocated_once(kube.objects())
        shown = kube.objects()
    with shared.ostinato() as ours:
        assert differences(kept(shown), kept(ours.objects())) == []
        create_all(ours, "last")
        assert_allocated_once(ours.objects())


def test_both_servers_show_the_same_at_the_same_time(shared: SharedEtcd) -> None:
    with shared.kube_apiserver() as kube, shared.ostinato() as ours:
        for one, other, prefix in ((kube, ours, "first"), (ours, kube, "second")):
            create_definitions(one, prefix)
            with other.watch(f"/api/v1/namespaces/{NAMESPACE}/configmaps") as events:
                names = create_all(one, prefix)
                until_served(other, f"/apis/example.com/v1/namespaces/{NAMESPACE}/{prefix}things")
                assert_equal(one, other)
                updated = update_all(other, names, f"of-{prefix}")
                added = [name for plural, name in names if plural == "configmaps"]
                changed = [name for plural, name in updated if plural == "configmaps"]
                received = islice(events, len(added) + 2 * len(changed))
                seen = Counter((each["type"], each["object"]["metadata"]["name"]) for each in received)
                assert seen == {("ADDED", name): 1 for name in added} | {("MODIFIED", name): 2 for name in changed}
        assert_allocated_once(kube.objects())
        assert_equal(kube, ours)
        for collection, namespace, name in kept(ours.objects()):
            if namespace == NAMESPACE and not collection.endswith(("/serviceaccounts", "/events")):
                path = path_of((collection, namespace, name))
                assert kube.call("DELETE", f"{path}?gracePeriodSeconds=0")[0] in (200, 202, 404), path
        assert_equal(kube, ours)


def assert_equal(one: Api, other: Api) -> None:
    mine, theirs = kept(one.objects()), kept(other.objects())
    assert differences(mine, theirs) == []
    assert differences(theirs, mine) == []


def kept(objects: dict[Key, Json]) -> dict[Key, Json]:
    """The objects that servers do not write for themselves."""
    own = ("/leases", "/endpointslices", "/endpoints", "/apiservices")
    return {key: obj for key, obj in objects.items() if not key[0].endswith(own) or key[1] == NAMESPACE}


def assert_allocated_once(objects: dict[Key, Json]) -> None:
    """No two Services have an address or a node port in common, and each address is recorded."""
    specs = [obj["spec"] for key, obj in objects.items() if key[0] == "/api/v1/services"]
    addresses = [ip for spec in specs for ip in spec.get("clusterIPs", ()) if ip != "None"]
    ports = [port["nodePort"] for spec in specs for port in spec.get("ports", ()) if port.get("nodePort")]
    ports += [spec["healthCheckNodePort"] for spec in specs if spec.get("healthCheckNodePort")]
    recorded = {key[2] for key in objects if key[0].endswith("/ipaddresses")}
    assert len(addresses) == len(set(addresses)) > 3
    assert set(addresses) <= recorded
    assert len(set(ports)) > 3


def test_failures_of_etcd_have_the_errors_of_kube_apiserver(shared: SharedEtcd) -> None:
    path = f"/apis/example.com/v1/namespaces/{NAMESPACE}/widgets"
    made = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "large"}}
    with shared.kube_apiserver() as kube, shared.ostinato() as ours:
        create_definitions(kube, "failing")
        for api in (kube, ours):
            until_served(api, path)

        def answers(text: str) -> list[tuple[int, Json]]:
            return [api.call("POST", path, {**made, "spec": {"text": text}}) for api in (kube, ours)]

        of_kube, of_ours = answers("x" * 1_600_000)
        assert of_kube == of_ours
        with full(EtcdSettings.parse(f"etcd://{shared.etcd}")):
            of_kube, of_ours = answers("x")
        assert of_kube == of_ours
        assert answers("x")[0][0] == 201
