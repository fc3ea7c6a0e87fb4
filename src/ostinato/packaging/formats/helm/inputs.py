"""Inputs of a chart's objects: expressions over its values, and the named templates that they use."""

from __future__ import annotations

from typing import Final

from ostinato.packaging.manifest import Expression, Items
from ostinato.packaging.objects.inputs import Inputs
from ostinato.packaging.package import Package

_CONDITIONS: Final = {
    "crds": ".Values.features.crds",
    "serviceAccount": ".Values.serviceAccount.create",
    "rbac": ".Values.features.rbac",
    "rbacForLeaderElection": 'and .Values.features.rbac (include "NAME.leaderElection" .)',
    "leaderElection": 'include "NAME.leaderElection" .',
    "userRoles": ".Values.features.userRoles",
    "podDisruptionBudget": ".Values.features.podDisruptionBudget",
    "networkPolicy": ".Values.features.networkPolicy",
    "metrics": ".Values.features.metrics",
    "secureMetrics": "and .Values.features.metrics .Values.features.secureMetrics",
    "plainMetrics": "not .Values.features.secureMetrics",
    "rbacForSecureMetrics": "and .Values.features.rbac .Values.features.metrics .Values.features.secureMetrics",
    "serviceMonitor": "and .Values.features.metrics .Values.features.serviceMonitor",
    "alerts": "and .Values.features.metrics .Values.features.alerts",
    "dashboard": "and .Values.features.metrics .Values.features.dashboard",
}

_HELPERS: Final = """\
{{- define "NAME.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if contains "NAME" .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name "NAME" | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "NAME.selectorLabels" -}}
{{- dict "app.kubernetes.io/name" "NAME" "app.kubernetes.io/instance" .Release.Name | toJson -}}
{{- end -}}

{{- define "NAME.labels" -}}
{{- $version := .Chart.AppVersion | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $chart := printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $own := include "NAME.selectorLabels" . | fromJson -}}
{{- $own = merge $own (dict "app.kubernetes.io/managed-by" .Release.Service "helm.sh/chart" $chart) -}}
{{- merge $own .Values.labels (dict "app.kubernetes.io/version" $version) | toJson -}}
{{- end -}}

{{- define "NAME.serviceAccountName" -}}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.name: not set; name the existing account, or set serviceAccount.create" -}}
{{- end -}}
{{- .Values.serviceAccount.name | default (include "NAME.fullname" .) -}}
{{- end -}}

{{- define "NAME.image" -}}
{{- .Values.image.repository -}}
{{- with .Values.image.tag }}:{{ . }}{{ end -}}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- /* "true" if replicas elect a leader: always if there are several. */ -}}
{{- define "NAME.leaderElection" -}}
{{- if or ELECTS .Values.leaderElection (gt (int .Values.replicas) 1) -}}true{{- end -}}
{{- end -}}

{{- define "NAME.env" -}}
{{- $found := list -}}
{{- range $name, $value := .Values.env -}}
{{- if kindIs "map" $value -}}
{{- $found = append $found (dict "name" $name "valueFrom" $value) -}}
{{- else -}}
{{- $found = append $found (dict "name" $name "value" (toString $value)) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}
"""


def condition_of(package: Package, feature: str) -> str:
    """Return the pipeline of a feature's switch."""
    return _CONDITIONS[feature].replace("NAME", package.name) if feature else ""


def helpers(package: Package) -> str:
    """Return the named templates."""
    return _HELPERS.replace("NAME", package.name).replace("ELECTS", "true" if package.operator.lease else "false")


def helm_inputs(package: Package) -> Inputs:
    name = package.name

    def included(template: str) -> str:
        return f'include "{name}.{template}" .'

    def value(path: str) -> Expression:
        return Expression(f".Values.{path}")

    elects = f'ternary "RollingUpdate" "Recreate" (eq ({included("leaderElection")}) "true")'
    labels = f"({included('labels')} | fromJson)"
    selector = f"({included('selectorLabels')} | fromJson)"
    return Inputs(
        package=package,
        name=Expression(included("fullname")),
        namespace=Expression(".Release.Namespace"),
        account=Expression(included("serviceAccountName")),
        account_annotations=Expression("merge (dict) .Values.serviceAccount.annotations .Values.annotations"),
        lease=Expression(included("fullname")),
        labels=Expression(labels),
        selector=Expression(selector),
        annotations=value("annotations"),
        pod_labels=Expression(f"merge {selector} .Values.podLabels .Values.labels"),
        pod_annotations=Expression("merge (dict) .Values.podAnnotations .Values.annotations"),
        replicas=value("replicas"),
        strategy=Expression(f'dict "type" ({elects})'),
        image=Expression(included("image")),
        image_pull_policy=value("image.pullPolicy"),
        image_pull_secrets=value("imagePullSecrets"),
        args=[Items(".Values.args")],
        env=[Items(f"{included('env')} | fromJsonArray")],
        env_from=value("envFrom"),
        resources=value("resources"),
        pod_security_context=value("podSecurityContext"),
        node_selector=value("nodeSelector"),
        tolerations=value("tolerations"),
        affinity=value("affinity"),
        topology_spread_constraints=value("topologySpreadConstraints"),
        priority_class_name=value("priorityClassName"),
        volumes=[Items(".Values.volumes")],
        volume_mounts=[Items(".Values.volumeMounts")],
    )
