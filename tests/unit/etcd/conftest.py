"""etcd clusters that the tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.etcd_cluster import EtcdCluster


@pytest.fixture(scope="session")
def one_member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """A cluster of one member, for tests that keep to keys of their own."""
    with EtcdCluster.start(tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster
