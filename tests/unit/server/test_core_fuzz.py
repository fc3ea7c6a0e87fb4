"""Arbitrary objects of core kinds never cause an internal error."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from tests.stage.api import Api, asking

_POD: dict[str, Any] = {
    "volumes": [
        {"name": "a"},
        {"name": "b", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p", "mode": 1}]}},
        {"name": "c", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "m"}}]}},
        {"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
        {"name": "e", "downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "f", "hostPath": {"path": "/x", "type": "File"}},
        {"name": "g", "image": {"reference": "r"}},
    ],
    "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
    "containers": [
        {
            "name": "c",
            "image": "i",
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}],
            "envFrom": [{"configMapRef": {"name": "m"}}],
            "ports": [{"containerPort": 80, "hostPort": 80, "name": "x"}],
            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}, "claims": [{"name": "x"}]},
            "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "a", "value": "b"}]}},
            "readinessProbe": {"grpc": {"port": 80}},
            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}, "postStart": {"exec": {"command": ["a"]}}},
            "volumeMounts": [{"name": "a", "mountPath": "/a", "mountPropagation": "None"}],
            "volumeDevices": [{"name": "a", "devicePath": "/b"}],
            "securityContext": {"runAsUser": 1, "seccompProfile": {"type": "RuntimeDefault"}},
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
        }
    ],
    "ephemeralContainers": [{"name": "z", "image": "i", "targetContainerName": "c"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "k", "labelSelector": {}, "matchLabelKeys": ["a"]}}
            ]
        },
    },
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}],
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}],
    "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a"], "options": [{"name": "x"}]},
    "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["h"]}],
    "securityContext": {"sysctls": [{"name": "a", "value": "b"}], "supplementalGroups": [1]},
    "schedulingGates": [{"name": "g"}],
    "readinessGates": [{"conditionType": "c"}],
    "resources": {"limits": {"cpu": "1"}},
    "overhead": {"cpu": "1"},
    "os": {"name": "linux"},
    "imagePullSecrets": [{"name": "p"}],
}
_SAMPLES: dict[str, dict[str, Any]] = {
    "namespaces/default/pods": {"spec": _POD},
    "namespaces/default/podtemplates": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD}},
    "namespaces/default/replicationcontrollers": {
        "spec": {"replicas": 1, "selector": {"a": "b"}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD}}
    },
    "namespaces/default/services": {
        "spec": {
            "type": "LoadBalancer",
            "ports": [{"port": 80, "name": "x", "targetPort": "y", "nodePort": 30001, "protocol": "TCP"}],
            "selector": {"a": "b"},
            "clusterIPs": ["10.0.0.9"],
            "clusterIP": "10.0.0.9",
            "externalIPs": ["1.2.3.4"],
            "ipFamilies": ["IPv4"],
            "loadBalancerSourceRanges": ["1.0.0.0/8"],
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}},
            "sessionAffinity": "ClientIP",
            "externalTrafficPolicy": "Local",
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}},
    },
    "namespaces/default/endpoints": {"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]},
    "namespaces/default/secrets": {"data": {"a": "YQ=="}, "stringData": {"b": "c"}, "type": "kubernetes.io/tls"},
    "namespaces/default/configmaps": {"data": {"a": "b"}, "binaryData": {"c": "YQ=="}, "immutable": True},
    "namespaces/default/events": {
        "involvedObject": {"kind": "Pod", "namespace": "default"},
        "eventTime": "2020-01-01T00:00:00.000000Z",
        "series": {"count": 2, "lastObservedTime": "2020-01-01T00:00:00.000000Z"},
        "source": {"component": "c"},
    },
    "namespaces/default/limitranges": {
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "1m"}, "default": {"cpu": "1"}}]}
    },
    "namespaces/default/resourcequotas": {
        "spec": {
            "hard": {"pods": "1"},
            "scopes": ["BestEffort"],
            "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]},
        }
    },
    "namespaces/default/persistentvolumeclaims": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "selector": {"matchLabels": {"a": "b"}},
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"},
            "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "x", "namespace": "n"},
        }
    },
    "persistentvolumes": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/a"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchFields": [{"key": "a", "operator": "In"}]}]}},
            "claimRef": {"name": "c"},
        }
    },
    "nodes": {
        "spec": {
            "podCIDR": "10.1.0.0/24",
            "podCIDRs": ["10.1.0.0/24"],
            "taints": [{"key": "a", "effect": "NoExecute"}],
        },
        "status": {"capacity": {"cpu": "1"}, "addresses": [{"type": "A", "address": "b"}]},
    },
    "namespaces/default/serviceaccounts": {"secrets": [{"name": "a"}], "imagePullSecrets": [{"name": "b"}]},
    "namespaces/default/bindings": {"target": {"kind": "Node", "name": "n"}},
    "namespaces": {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}},
}
_ODD: tuple[Any, ...] = (None, "", 0, -1, [], {}, [None], "None", "0", "-1", "a b", "../x", 1 << 31, True, False, [{}])
_ROUNDS = 60


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += _places(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            found += _places(item, (*path, i))
    return found


def _twisted(sample: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A sample with a few unusual values."""
    made = copy.deepcopy(sample)
    for _ in range(chance.randint(1, 3)):
        places = [place for place in _places(made) if len(place) > 1]
        if not places:
            break
        *above, last = chance.choice(places)
        holder: Any = made
        for step in above:
            holder = holder[step]
        if isinstance(holder, dict) and chance.random() < 0.4:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(chance.choice(_ODD))
    return made


@pytest.mark.parametrize("path", _SAMPLES, ids=lambda each: each.rpartition("/")[2])
def test_odd_objects_are_stored_or_refused(path: str) -> None:
    chance = random.Random(path)

    @asking
    async def send(api: Api) -> None:
        await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        for i in range(_ROUNDS):
            sent = {"metadata": {"name": f"n-{i}"}, **_twisted(_SAMPLES[path], chance)}
            answer = await api.post(f"/api/v1/{path}", sent)
            assert answer.code < 500 or path.endswith("bindings"), (sent, answer)
            assert "internal error; see the server log" not in answer.message, (sent, answer)
            if answer.code == 201 and not path.endswith("bindings"):
                twisted = {key: value for key, value in _twisted(_SAMPLES[path], chance).items() if key != "metadata"}
                for place in (f"/api/v1/{path}/n-{i}", f"/api/v1/{path}/n-{i}/status"):
                    changed = await api.merge(place, twisted)
                    assert "internal error; see the server log" not in changed.message, (twisted, changed)

    send()
