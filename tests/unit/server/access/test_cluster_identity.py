"""Servers of one cluster must have the same keys."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.stage.api import Api, asking

from ostinato.server.access.cluster_identity import NAME, ClusterIdentity
from ostinato.server.state import StateError

_FIRST = ClusterIdentity(Path("a"), "ca-1", ["ca-1"], "key-1", ["key-1"])


@asking
async def test_a_server_with_other_keys_is_refused_and_changes_nothing(api: Api) -> None:
    await _FIRST.check(api.server.handle)
    await _FIRST.record(api.server.handle)
    other_authority = msgspec.structs.replace(_FIRST, authority="ca-2", authorities=["ca-2"])
    with pytest.raises(
        StateError, match=r"the certificate authority in a \(ca-2\) is not that .* copy ca.crt and ca.key"
    ):
        await other_authority.check(api.server.handle)
    other_key = msgspec.structs.replace(_FIRST, account_key="key-2", account_keys=["key-2"])
    with pytest.raises(StateError, match=r"the service account key in a \(key-2\) is not that .* copy sa.key"):
        await other_key.record(api.server.handle)
    await _FIRST.check(api.server.handle)


@asking
async def test_keys_are_rotated_by_servers_that_accept_the_old_ones(api: Api) -> None:
    await _FIRST.record(api.server.handle)
    rotated = ClusterIdentity(Path("b"), "ca-2", ["ca-2", "ca-1"], "key-2", ["key-2", "key-1"])
    await rotated.check(api.server.handle)
    await rotated.record(api.server.handle)
    data = (await api.get(f"/api/v1/namespaces/kube-system/configmaps/{NAME}")).body["data"]
    assert data == {"certificate-authority": "ca-2", "service-account-key": "key-2"}
    with pytest.raises(StateError):
        await _FIRST.check(api.server.handle)
