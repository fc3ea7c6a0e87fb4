"""Thirty tests of an operator with the fixtures of `ostinato.testing`; `bench/go/envtest` has the same in Go."""

from __future__ import annotations

import pytest

from bench.operator_suite.websites import FINALIZER, Website, cleaned, website, websites
from ostinato import Invalid, ObjectMeta
from ostinato.api.owners import is_controlled_by
from ostinato.client import MergePatch
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap, Namespace


@pytest.fixture
async def site(manager, client, eventually):
    """A published website."""
    await manager.start(websites)
    await client.create(website(content="hello"))
    return await eventually(Website, "blog", lambda each: each.status.url)


# Creation


async def test_content_is_in_a_config_map(site, client):
    assert (await client.get(ConfigMap, "blog")).data == {"index.html": "hello"}


async def test_a_deployment_is_created(site, client):
    found = await client.get(Deployment, "blog")
    assert found.spec.template.spec.containers[0].image == "nginx"


async def test_one_replica_is_the_default(site, client):
    assert (await client.get(Deployment, "blog")).spec.replicas == 1


async def test_replicas_are_those_of_the_website(manager, client, eventually):
    await manager.start(websites)
    await client.create(website(replicas=3))
    await eventually(Deployment, "blog", lambda each: each.spec.replicas == 3)


async def test_no_replicas_are_possible(manager, client, eventually):
    await manager.start(websites)
    await client.create(website(replicas=0))
    await eventually(Deployment, "blog", lambda each: each.spec.replicas == 0)


async def test_the_deployment_has_the_label(site, client):
    assert (await client.get(Deployment, "blog")).metadata.labels == {"website": "blog"}


async def test_the_config_map_is_owned(site, client):
    assert is_controlled_by(await client.get(ConfigMap, "blog"), site)


async def test_the_deployment_is_owned(site, client):
    assert is_controlled_by(await client.get(Deployment, "blog"), site)


async def test_an_existing_website_is_published(manager, cluster, eventually):
    await cluster.install(Website)
    await cluster.client.create(website())
    await manager.start(websites)
    await eventually(Deployment, "blog")


async def test_websites_are_independent(site, client, eventually):
    await client.create(website("shop", content="buy"))
    await eventually(ConfigMap, "shop", lambda each: each.data == {"index.html": "buy"})
    assert (await client.get(ConfigMap, "blog")).data == {"index.html": "hello"}


async def test_websites_of_other_namespaces_are_published(site, client, eventually):
    await client.create(Namespace(metadata=ObjectMeta(name="other")))
    await client.in_namespace("other").create(website())
    await eventually(ConfigMap, "blog", namespace="other")


# Changes


async def test_changed_content_is_published(site, client, eventually):
    await client.patch(Website, "blog", MergePatch({"spec": {"content": "new"}}))
    await eventually(ConfigMap, "blog", lambda each: each.data == {"index.html": "new"})


async def test_a_website_is_scaled(site, client, eventually):
    await client.patch(Website, "blog", MergePatch({"spec": {"replicas": 5}}))
    await eventually(Deployment, "blog", lambda each: each.spec.replicas == 5)


async def test_a_changed_host_is_in_the_status(site, client, eventually):
    await client.patch(Website, "blog", MergePatch({"spec": {"host": "other.org"}}))
    await eventually(Website, "blog", lambda each: each.status.url == "https://other.org")


async def test_a_deleted_config_map_is_created_again(site, client, eventually):
    await client.delete(ConfigMap, "blog")
    await eventually(ConfigMap, "blog")


async def test_a_deleted_deployment_is_created_again(site, client, eventually):
    await client.delete(Deployment, "blog")
    await eventually(Deployment, "blog")


async def test_changes_by_others_are_reverted(site, client, eventually):
    await client.patch(ConfigMap, "blog", MergePatch({"data": {"index.html": "defaced"}}))
    await eventually(ConfigMap, "blog", lambda each: each.data == {"index.html": "hello"})


async def test_replicas_set_by_others_are_reverted(site, client, eventually):
    await client.patch(Deployment, "blog", MergePatch({"spec": {"replicas": 9}}))
    await eventually(Deployment, "blog", lambda each: each.spec.replicas == 1)


async def test_labels_of_others_stay(site, client, eventually):
    await client.patch(ConfigMap, "blog", MergePatch({"metadata": {"labels": {"theirs": "yes"}}}))
    await client.patch(Website, "blog", MergePatch({"spec": {"content": "new"}}))
    found = await eventually(ConfigMap, "blog", lambda each: each.data == {"index.html": "new"})
    assert found.metadata.labels == {"theirs": "yes"}


# Pausing


async def test_a_paused_website_is_not_published(manager, client, eventually):
    await manager.start(websites)
    await client.create(website(paused=True))
    await eventually(Website, "blog", lambda each: each.metadata.finalizers)
    assert await client.get(ConfigMap, "blog", missing=None) is None


async def test_a_website_is_published_when_it_is_resumed(manager, client, eventually):
    await manager.start(websites)
    await client.create(website(paused=True))
    await client.patch(Website, "blog", MergePatch({"spec": {"paused": False}}))
    await eventually(ConfigMap, "blog")


# Status and Events


async def test_the_status_has_the_url(site):
    assert site.status.url == "https://example.org"


async def test_the_status_has_the_generation(site):
    assert site.status.observed_generation == site.metadata.generation


async def test_the_status_follows_the_deployment(site, client, eventually):
    status = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    await client.patch(Deployment, "blog", MergePatch({"status": status}), subresource="status")
    await eventually(Website, "blog", lambda each: each.status.available == 1)


async def test_publishing_is_an_event(site, events):
    await events.expect("Published", regarding=site, note="1 replicas")


async def test_a_config_map_of_another_owner_is_not_changed(manager, client, events):
    await client.create(ConfigMap(metadata=ObjectMeta(name="blog"), data={"theirs": "yes"}))
    await manager.start(websites)
    await client.create(website())
    await events.expect("NotOwned", kind="Warning")
    assert (await client.get(ConfigMap, "blog")).data == {"theirs": "yes"}
    assert manager.errors


# Validation and deletion


@pytest.mark.parametrize("replicas", [-1, 11])
async def test_replicas_are_limited(cluster, client, replicas):
    await cluster.install(Website)
    with pytest.raises(Invalid, match=r"spec\.replicas"):
        await client.create(website(replicas=replicas))


async def test_the_host_is_validated(cluster, client):
    await cluster.install(Website)
    with pytest.raises(Invalid, match=r"spec\.host"):
        await client.create(website(host="NOT A HOST"))


async def test_a_deleted_website_is_removed_from_the_network(site, client, eventually):
    assert site.metadata.finalizers == [FINALIZER]
    await client.delete(Website, "blog")
    await eventually(Website, "blog", gone=True)
    assert cleaned.pop() == "blog"
