"""What tests of chart operators share: a chart that is written for each test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ostinato.client import Client
from ostinato.client.views import Unstructured
from ostinato.frontends.charts.releases.record import ReleaseRecord, record_of

Json = dict[str, Any]

SHOP = Unstructured.of("example.com/v1", "Shop")
CONFIG_MAP = Unstructured.of("v1", "ConfigMap")
SECRET = Unstructured.of("v1", "Secret")
JOB = Unstructured.of("batch/v1", "Job")
DEPLOYMENT = Unstructured.of("apps/v1", "Deployment")

CHART = "apiVersion: v2\nname: shop\nversion: 1.2.3\nappVersion: '7'\ndescription: Sells things.\n"
VALUES = """
motto: hello
replicas: 1
extra: false
keep: false
feature: {enabled: true, name: ''}
hosts: [a]
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
  labels: {app: {{ .Chart.Name }}}
data:
  motto: {{ .Values.motto | quote }}
  size: {{ .Values.replicas | quote }}
"""
EXTRA = """
{{- if .Values.extra }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-extra
{{- if .Values.keep }}
  annotations: {helm.sh/resource-policy: keep}
{{- end }}
{{- end }}
"""


def make_chart(directory: Path, templates: dict[str, str] | None = None, **files: str) -> Path:
    """Write a chart: `templates` in addition to those above; `files` with two underscores for a slash."""
    chart = directory / "shop"
    written = {
        "Chart.yaml": CHART,
        "values.yaml": VALUES,
        "templates/config.yaml": CONFIG,
        "templates/extra.yaml": EXTRA,
        "templates/NOTES.txt": "Welcome to {{ .Release.Name }}.",
        **{f"templates/{name}": text for name, text in (templates or {}).items()},
        **{name.replace("__", "/"): text for name, text in files.items()},
    }
    for name, text in written.items():
        (chart / name).parent.mkdir(parents=True, exist_ok=True)
        (chart / name).write_text(text)
    return chart


def hook(name: str, event: str, *, weight: int = 0, policy: str = "", image: str = "busybox") -> str:
    """Return the template of a Job that is a hook."""
    deletion = f"\n    helm.sh/hook-delete-policy: {policy}" if policy else ""
    return f"""
apiVersion: batch/v1
kind: Job
metadata:
  name: {{{{ .Release.Name }}}}-{name}
  annotations:
    helm.sh/hook: {event}
    helm.sh/hook-weight: "{weight}"{deletion}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: a, image: {image}}}]
"""


def shop(name: str = "a", annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": name}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": spec}


def conditions(instance: Json) -> dict[str, Json]:
    return {each["type"]: each for each in instance.get("status", {}).get("conditions", [])}


async def records(client: Client, name: str = "a") -> list[ReleaseRecord]:
    secrets = await client.list(SECRET, namespace="default", labels={"owner": "helm", "name": name})
    return sorted(map(record_of, secrets), key=lambda each: each.version)


async def history(client: Client, name: str = "a") -> list[tuple[int, str]]:
    return [(each.version, each.status) for each in await records(client, name)]


async def complete_job(client: Client, name: str, *, succeeded: bool = True) -> None:
    """Do as the Job controller does at the end of a Job."""
    now = "2026-01-01T00:00:00Z"
    finished = {"type": "Complete" if succeeded else "Failed", "status": "True", "message": "it was told to"}
    criteria = {"type": "SuccessCriteriaMet" if succeeded else "FailureTarget", "status": "True"}
    job = await client.get(JOB, name)
    status: Json = {"startTime": now, "conditions": [criteria, finished], "succeeded": int(succeeded)}
    if succeeded:
        status["completionTime"] = now
    for each in status["conditions"]:
        each["lastTransitionTime"] = now
    await client.update({**job, "status": status}, subresource="status")
