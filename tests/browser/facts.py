"""Made-up facts in the protocol of docs/dev/page.md: as many objects and events as a test wants."""

from __future__ import annotations

import time
from typing import Any

HOSTILE = "<img src=x onerror=document.title='pwned'>"

Json = dict[str, Any]


def ref(kind: str, name: str, namespace: str = "default", api_version: str = "v1") -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "uid": f"{kind}/{namespace}/{name}",
    }


def tree(of: Json, *children: Json, ready: str = "ready", message: str = "", deleting: float | None = None) -> Json:
    return {
        "ref": of,
        "ready": ready,
        "message": message,
        "created": time.time() - 90,
        "deleting": deleting,
        "children": list(children),
    }


class Facts:
    """A Deployment with its ReplicaSets and Pods, controllers, alarms, nodes, and steady writes."""

    def __init__(self, *, pods: int = 3, nodes: int = 3, rate: int = 4, mode: str = "plane") -> None:
        self.pods = pods
        self.rate = rate  # writes per second
        self.mode = mode
        self.started = time.time()
        self.serial = 0
        self.writes = True
        self.denied: list[Json] = []
        self.message = "3 of 3 Pods ready"
        self.nodes: list[Json] = [
            {
                "name": f"node-{i}",
                "ready": i % 97 != 41,
                "pods": (i * 37) % 110,
                "capacity": 110,
                "cpu": ((i * 53) % 100) / 100,
                "memory": ((i * 29) % 100) / 100,
                "taints": int(i % 50 == 7),
            }
            for i in range(nodes)
        ]
        self.recorded: list[Json] = []
        for index in range(60):
            self.recorded.append(self.batch(self.started - 60 + index, self.rate))

    def pod(self, index: int) -> Json:
        return ref("Pod", f"web-7d9f6c5b8-{index:05d}")

    def roots(self) -> list[Json]:
        replica_sets = []
        for start in range(0, self.pods, 50):
            pods = [tree(self.pod(i)) for i in range(start, min(start + 50, self.pods))]
            replica_sets.append(tree(ref("ReplicaSet", f"web-7d9f6c5b8-{start}", api_version="apps/v1"), *pods))
        pending = tree(
            ref("Pod", "pending"), ready="progressing", message="0/3 nodes are available: 3 Insufficient cpu."
        )
        stuck = tree(
            ref("Bucket", "photos", api_version="example.dev/v1"),
            ready="progressing",
            message="waits for example.dev/cleanup",
            deleting=self.started - 400,
        )
        return [
            tree(ref("Deployment", "web", api_version="apps/v1"), *replica_sets, message=self.message),
            pending,
            stuck,
            tree(ref("ConfigMap", HOSTILE), message=HOSTILE),
        ]

    def write(self, at: float) -> Json:
        self.serial += 1
        index = self.serial % max(self.pods, 1)
        verb, author, kind = [
            ("status", "kubelet", "Pod"),
            ("create", "replicaset", "Pod"),
            ("update", "scheduler", "Pod"),
            ("status", "replicaset", "ReplicaSet"),
            ("delete", "replicaset", "Pod"),
            ("update", "kubectl", "Deployment"),
            ("status", "deployment", "Deployment"),
            ("create", "deployment", "ReplicaSet"),
            ("create", "event-recorder", "Event"),
            ("update", "endpointslice", "EndpointSlice"),
        ][self.serial % 10]
        of = {
            "Pod": self.pod(index),
            "Deployment": ref("Deployment", "web", api_version="apps/v1"),
            "ReplicaSet": ref("ReplicaSet", "web-7d9f6c5b8-0", api_version="apps/v1"),
            "Event": ref("Event", "web.1"),
            "EndpointSlice": ref("EndpointSlice", "web-x7k2p", api_version="discovery.k8s.io/v1"),
        }[kind]
        return {
            "id": f"w{self.serial}",
            "at": at,
            "ref": of,
            "verb": verb,
            "author": author,
            "manager": author,
            "resourceVersion": str(self.serial),
            "reconcile": None,
            "summary": "status.phase" if verb == "status" else "",
            "diff": [{"path": "status.phase", "old": "Pending", "new": "Running"}] if verb == "status" else [],
        }

    def controllers(self) -> list[Json]:
        idle = {
            "depth": 0,
            "workers": 5,
            "busy": 0,
            "rate": 1.4,
            "p50": 0.0021,
            "p99": 0.018,
            "errors": 0.0,
            "retries": 0.0,
            "oldest": 0.0,
            "reason": "",
        }
        behind = {
            "depth": 148,
            "busy": 5,
            "rate": 2.1,
            "p50": 2.3,
            "p99": 4.8,
            "oldest": 61.0,
            "reason": "reconciles take 2.3 s (median) and all 5 workers are busy; 148 keys wait",
        }
        names = ["deployment", "replicaset", "scheduler", "kubelet", "endpointslice", "garbage-collector"]
        return [{"name": name, **idle} for name in names] + [{"name": "buckets", **idle, **behind}]

    def reconcile(self, at: float) -> Json:
        self.serial += 1
        failed = self.serial % 7 == 0
        return {
            "id": f"r{self.serial}",
            "at": at,
            "controller": "buckets",
            "key": "default/photos",
            "seconds": 2.3,
            "waited": 0.2,
            "result": "error" if failed else "success",
            "error": "storage answers 503" if failed else None,
            "reasons": ["Bucket default/photos changed"],
            "causes": [],
            "writes": [{"ref": ref("Bucket", "photos", api_version="example.dev/v1"), "resourceVersion": "7"}],
        }

    def batch(self, at: float, writes: int) -> Json:
        return {
            "at": at,
            "writes": [self.write(at) for _ in range(min(writes, 200))],
            "reconciles": [self.reconcile(at)],
            "controllers": self.controllers(),
            "alarms": None,
            "dropped": max(writes - 200, 0),
        }

    def alarms(self) -> list[Json]:
        bucket = ref("Bucket", "photos", api_version="example.dev/v1")
        return [
            {
                "id": "a1",
                "severity": "error",
                "type": "hot-loop",
                "at": self.started,
                "controller": "buckets",
                "ref": bucket,
                "message": f"Bucket default/photos was written 60 times in 10 s {HOSTILE}",
                "detail": "spec.size flips between 1Gi and 1024Mi",
            },
            {
                "id": "a2",
                "severity": "warning",
                "type": "stuck-deletion",
                "at": self.started - 400,
                "controller": None,
                "ref": bucket,
                "message": "Bucket default/photos waits for the finalizer example.dev/cleanup",
                "detail": "buckets removes it, and is behind",
            },
        ]

    def graph(self) -> Json:
        kinds = {
            "Deployment": "apps/v1",
            "ReplicaSet": "apps/v1",
            "Pod": "v1",
            "Bucket": "example.dev/v1",
            "Event": "v1",
            "EndpointSlice": "discovery.k8s.io/v1",
            "Service": "v1",
            "Node": "v1",
        }
        loops = {
            "deployment": ("Deployment", ["ReplicaSet"], ["ReplicaSet", "Deployment"]),
            "replicaset": ("ReplicaSet", ["Pod"], ["Pod", "ReplicaSet"]),
            "scheduler": ("Pod", ["Node"], ["Pod", "Event"]),
            "kubelet": ("Pod", [], ["Pod", "Event"]),
            "endpointslice": ("Service", ["Pod"], ["EndpointSlice"]),
            "buckets": ("Bucket", [], ["Bucket"]),
        }
        ids = {kind: f"kind:{api_version}/{kind}" for kind, api_version in kinds.items()}
        nodes = [{"id": "user", "type": "user", "label": "Users"}]
        nodes += [{"id": ids[kind], "type": "kind", "label": kind} for kind in kinds]
        nodes += [{"id": f"controller:{name}", "type": "controller", "label": name} for name in loops]
        edges = [{"from": "user", "to": ids["Deployment"], "type": "writes", "primary": False}]
        for name, (primary, watched, written) in loops.items():
            controller = f"controller:{name}"
            edges.append({"from": ids[primary], "to": controller, "type": "watches", "primary": True})
            edges += [{"from": ids[kind], "to": controller, "type": "watches", "primary": False} for kind in watched]
            edges += [{"from": controller, "to": ids[kind], "type": "writes", "primary": False} for kind in written]
        return {"nodes": nodes, "edges": edges}

    def detail(self, of: Json) -> Json:
        at = time.time()
        edit = self.write(at - 30) | {
            "verb": "update",
            "author": "kubectl",
            "ref": ref("Deployment", "web", api_version="apps/v1"),
            "id": "edit",
            "diff": [{"path": "spec.template.spec.containers[0].image", "old": "web:1", "new": "web:2"}],
        }
        stuck = of["kind"] == "Bucket"
        return {
            "ref": of,
            "owners": ["kubectl", "deployment", HOSTILE],
            "lines": [
                {"text": "kind: " + of["kind"], "owner": None},
                {"text": "metadata:", "owner": None},
                {"text": f"  name: {of['name']}", "owner": None},
                {"text": "spec:", "owner": None},
                {"text": "  replicas: 3", "owner": "kubectl"},
                {"text": f"  note: {HOSTILE}", "owner": HOSTILE},
                {"text": "status:", "owner": None},
                {"text": "  readyReplicas: 3", "owner": "deployment"},
            ],
            "events": [
                {"at": at, "type": "Warning", "reason": "BackOff", "message": HOSTILE, "count": 3, "from": "kubelet"}
            ],
            "conditions": [
                {"at": at - 60, "type": "Available", "status": "False", "reason": "MinimumReplicas", "message": ""},
                {"at": at - 40, "type": "Available", "status": "True", "reason": "MinimumReplicas", "message": ""},
                {"at": at - 60, "type": "Progressing", "status": "True", "reason": "NewReplicaSet", "message": HOSTILE},
            ],
            "writes": [edit, *(self.write(at - i) | {"ref": of} for i in range(4))],
            "children": [
                self.write(at - i) | {"verb": verb, "ref": self.pod(i)} for i, verb in enumerate(("create", "delete"))
            ],
            "ready": "progressing" if stuck else "ready",
            "message": self.message,
            "finalizers": [{"name": "example.dev/cleanup", "holder": "buckets"}] if stuck else [],
            "deleting": at - 400 if stuck else None,
            "gone": None,
        }

    def why(self) -> Json:
        at = time.time()
        deployment = ref("Deployment", "web", api_version="apps/v1")
        edit = self.write(at - 3) | {
            "verb": "update",
            "author": "kubectl",
            "ref": deployment,
            "summary": "spec.template",
            "diff": [{"path": "spec.template.spec.containers[0].image", "old": "web:1", "new": "web:2"}],
        }
        created = self.write(at - 1) | {"verb": "create", "author": "replicaset", "ref": self.pod(0), "diff": []}
        reconcile = self.reconcile(at - 2) | {
            "controller": "deployment",
            "key": "default/web",
            "result": "success",
            "error": None,
            "reasons": ["Deployment default/web changed"],
        }
        other = self.write(at - 4) | {"verb": "delete", "author": "unknown", "ref": self.pod(1)}
        user = {"type": "user", "who": "kubectl", "write": edit}
        return {
            "chain": [
                {"type": "write", "write": created},
                {"type": "reconcile", "reconcile": reconcile, "also": [other]},
                {"type": "skipped", "n": 12},
                user,
            ],
            "origins": [user, {"type": "reason", "who": "node-controller", "why": "node n has sent no heartbeat"}],
        }
