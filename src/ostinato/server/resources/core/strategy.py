"""Strategies of the core group."""

from __future__ import annotations

from ostinato.server.resources.core.configuration import ConfigMap, Secret
from ostinato.server.resources.core.limits import LimitRange, ResourceQuota
from ostinato.server.resources.core.namespaces import Namespace
from ostinato.server.resources.core.nodes import Node
from ostinato.server.resources.core.pods.strategy import Pod
from ostinato.server.resources.core.replication_controllers import PodTemplate, ReplicationController
from ostinato.server.resources.core.service_accounts import ServiceAccount
from ostinato.server.resources.core.services.endpoints import Endpoints
from ostinato.server.resources.core.services.strategy import Service
from ostinato.server.resources.core.storage.strategy import PersistentVolume, PersistentVolumeClaim
from ostinato.server.resources.strategy import Strategy

STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("", "configmaps"): ConfigMap(),
    ("", "endpoints"): Endpoints(),
    ("", "limitranges"): LimitRange(),
    ("", "namespaces"): Namespace(),
    ("", "nodes"): Node(),
    ("", "persistentvolumeclaims"): PersistentVolumeClaim(),
    ("", "persistentvolumes"): PersistentVolume(),
    ("", "pods"): Pod(),
    ("", "podtemplates"): PodTemplate(),
    ("", "replicationcontrollers"): ReplicationController(),
    ("", "resourcequotas"): ResourceQuota(),
    ("", "secrets"): Secret(),
    ("", "serviceaccounts"): ServiceAccount(),
    ("", "services"): Service(),
}
