"""Objects that benchmarks use."""

from typing import Any

Json = dict[str, Any]


def pod(name: str = "web-7d4b9c6f5-x2x9z") -> Json:
    """Return a Pod as in a cluster: about 5.5 kB of JSON, most of it status and managedFields."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/web:1.42.0",
        "args": ["--port=8080", "--config=/etc/web/config.yaml"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(24)],
        "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/web"},
            {
                "name": "kube-api-access-abcde",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            },
        ],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    stamp = "2026-01-02T03:04:05Z"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": "web-7d4b9c6f5-",
            "namespace": "shop",
            "uid": "0f9a3b62-6f0e-4f6c-9a76-0c5a3d8f1b2e",
            "resourceVersion": "184467",
            "generation": 1,
            "creationTimestamp": stamp,
            "labels": {"app": "web", "tier": "front", "pod-template-hash": "7d4b9c6f5"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web-7d4b9c6f5",
                    "uid": "5d1d4bb8-64d1-4a4c-8a0f-2f0f64b7a9a1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {
                    "manager": manager,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": stamp,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"main"}': {
                                    f"f:{field}": {} for field in (".", "args", "env", "image", "name", "ports")
                                }
                            },
                            **{f"f:{field}": {} for field in ("dnsPolicy", "nodeName", "restartPolicy", "volumes")},
                        }
                    },
                }
                for manager in ("kube-controller-manager", "kube-scheduler")
            ],
        },
        "spec": {
            "containers": [container],
            "volumes": [
                {"name": "config", "configMap": {"name": "web", "defaultMode": 420}},
                {
                    "name": "kube-api-access-abcde",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                            {
                                "downwardAPI": {
                                    "items": [
                                        {
                                            "path": "namespace",
                                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                                        }
                                    ]
                                }
                            },
                        ],
                        "defaultMode": 420,
                    },
                },
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "web",
            "nodeName": "node-17",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": "10.1.0.17",
            "podIP": "10.2.17.4",
            "podIPs": [{"ip": "10.2.17.4"}],
            "startTime": stamp,
            "containerStatuses": [
                {
                    "name": "main",
                    "state": {"running": {"startedAt": stamp}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": "registry.example.com/team/web:1.42.0",
                    "imageID": "registry.example.com/team/web@sha256:" + "ab" * 32,
                    "containerID": "containerd://" + "cd" * 32,
                    "started": True,
                }
            ],
            "qosClass": "Burstable",
        },
    }


def deployment() -> Json:
    template = pod()
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {key: template["spec"][key] for key in ("containers", "volumes", "restartPolicy")},
            },
        },
    }
