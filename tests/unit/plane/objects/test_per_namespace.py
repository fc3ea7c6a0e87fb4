"""Objects of every namespace: service account `default` and root certificate."""

from __future__ import annotations

from pathlib import Path

from tests.stage.plane import Stage, on_stage

from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import ConfigMap, Namespace, ServiceAccount
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.certificates import root_ca

ACCOUNTS = "serviceaccount-controller"
ROOT = "kube-root-ca.crt"


def test_every_namespace_has_the_default_account_and_it_is_recreated() -> None:
    async def play(stage: Stage) -> None:
        await stage.settle()
        assert await stage.client.get(ServiceAccount, "default", namespace="kube-system")
        await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
        await stage.settle()
        account = await stage.client.get(ServiceAccount, "default", namespace="n")
        await stage.client.delete(account)
        await stage.settle()
        again = await stage.client.get(ServiceAccount, "default", namespace="n")
        assert again.metadata.uid != account.metadata.uid

    on_stage(play, ACCOUNTS)


def test_a_terminating_namespace_gets_nothing() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
        await stage.settle()
        await stage.client.delete(Namespace, "n")
        await stage.client.delete(ServiceAccount, "default", namespace="n")
        await stage.settle()
        assert not await stage.client.list(ServiceAccount, namespace="n")

    on_stage(play, ACCOUNTS)


def test_every_namespace_has_the_root_certificate_and_it_is_restored(tmp_path: Path) -> None:
    certificate = tmp_path / "ca.crt"
    certificate.write_text("CERTIFICATE")

    async def play(stage: Stage) -> None:
        stage.run(lambda manager: root_ca.add_to(manager, Options(ca_certificate=certificate)))
        await stage.settle()
        found = await stage.client.get(ConfigMap, ROOT)
        assert found.data == {"ca.crt": "CERTIFICATE"}
        assert found.metadata.annotations["kubernetes.io/description"].startswith("Contains a CA bundle")
        change = {"data": {"ca.crt": "nonsense", "more": "x"}, "metadata": {"annotations": None}}
        await stage.client.patch(ConfigMap, ROOT, MergePatch(change))
        await stage.settle()
        again = await stage.client.get(ConfigMap, ROOT)
        assert (again.data, again.metadata.annotations) == (found.data, found.metadata.annotations)
        await stage.client.delete(ConfigMap, ROOT)
        await stage.settle()
        assert (await stage.client.get(ConfigMap, ROOT)).data == {"ca.crt": "CERTIFICATE"}

    on_stage(play)


def test_without_a_certificate_nothing_is_published() -> None:
    async def play(stage: Stage) -> None:
        await stage.settle()
        assert ROOT not in {each.metadata.name for each in await stage.client.list(ConfigMap)}

    on_stage(play, "root-ca-certificate-publisher-controller", ACCOUNTS)
