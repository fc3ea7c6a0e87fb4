"""A template of the size and style of a chart's Deployment: CPU time of parsing and rendering beside Go.

    python -m bench.templates [--rounds 300]

Go's program (`bench/go/templates`) is built on first use; without Go, only ours is measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from ostinato.gotemplate import Templates

TEMPLATE = """
{{- define "web.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- if .Chart.AppVersion }}
app.kubernetes.io/version: {{ printf "%q" .Chart.AppVersion }}
{{- end }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
{{- define "web.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else }}{{ printf "%s-%s" .Release.Name (or .Values.nameOverride .Chart.Name) }}{{ end }}
{{- end -}}
{{- range $index, $component := .Values.components }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ template "web.fullname" $ }}-{{ $component.name }}
  labels:
{{ template "web.labels" $ }}
    {{- range $key, $value := $component.labels }}
    {{ $key }}: {{ $value | printf "%q" }}
    {{- end }}
spec:
  {{- if not $component.autoscaling.enabled }}
  replicas: {{ $component.replicas }}
  {{- end }}
  template:
    spec:
      {{- with $component.serviceAccount }}
      serviceAccountName: {{ . }}
      {{- end }}
      containers:
        - name: {{ $component.name }}
          image: "{{ $.Values.image.registry }}/{{ $component.image.name }}:{{ or $component.image.tag "latest" }}"
          {{- if and $component.command (ne (len $component.command) 0) }}
          command:
            {{- range $component.command }}
            - {{ printf "%q" . }}
            {{- end }}
          {{- end }}
          env:
            {{- range $component.env }}
            - name: {{ .name }}
              {{- if .secret }}
              valueFrom:
                secretKeyRef:
                  name: {{ index .secret "name" }}
                  key: {{ index .secret "key" }}
              {{- else }}
              value: {{ printf "%q" .value }}
              {{- end }}
            {{- end }}
          ports:
            {{- range $port := $component.ports }}
            - name: {{ $port.name }}
              containerPort: {{ $port.number }}
              protocol: {{ if eq $port.protocol "udp" "UDP" }}UDP{{ else }}TCP{{ end }}
            {{- else }}
            []
            {{- end }}
          {{- /* probes */}}
          {{- if and $component.probe (gt $component.probe.port 0.0) }}
          livenessProbe:
            httpGet: {path: {{ $component.probe.path }}, port: {{ $component.probe.port }}}
          {{- end }}
{{- end }}
"""


def data(components: int = 10) -> dict[str, Any]:
    """Values like those of a chart."""
    component = {
        "labels": {"tier": "front", "team": "web", "stage": "test"},
        "autoscaling": {"enabled": False},
        "replicas": 3.0,
        "serviceAccount": "runner",
        "image": {"name": "team/web", "tag": "1.2.3"},
        "command": ["serve", "--port", "8080"],
        "env": [{"name": f"NAME_{number}", "value": f"value {number}"} for number in range(8)]
        + [{"name": "TOKEN", "secret": {"name": "web", "key": "token"}}],
        "ports": [
            {"name": "http", "number": 8080.0, "protocol": "tcp"},
            {"name": "dns", "number": 53.0, "protocol": "udp"},
        ],
        "probe": {"path": "/healthz", "port": 8080.0},
    }
    return {
        "Chart": {"Name": "web", "AppVersion": "1.2.3"},
        "Release": {"Name": "test", "Service": "Helm"},
        "Values": {
            "image": {"registry": "registry.example.com"},
            "components": [{"name": f"part-{number}", **component} for number in range(components)],
        },
    }


def ours(rounds: int) -> dict[str, Any]:
    start = time.process_time()
    for _ in range(rounds):
        templates = Templates()
        templates.parse("page", TEMPLATE)
    parsing = time.process_time() - start
    values = data()
    start = time.process_time()
    first = templates.render("page", values)
    compiling = time.process_time() - start
    start = time.process_time()
    for _ in range(rounds):
        output = templates.render("page", values)
    rendering = time.process_time() - start
    assert output == first
    return {
        "parse": parsing / rounds * 1e6,
        "first": compiling * 1e6,
        "render": rendering / rounds * 1e6,
        "output": output,
    }


def go(rounds: int) -> dict[str, Any] | None:
    if shutil.which("go") is None:
        return None
    source = Path(__file__).parent / "go" / "templates"
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        subprocess.run(["go", "build", "-o", place / "templates", "."], cwd=source, check=True)
        (place / "template").write_text(TEMPLATE)
        (place / "data").write_text(json.dumps(data()))
        command = [place / "templates", place / "template", place / "data", str(rounds)]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    options, _ = parser.parse_known_args()
    mine, theirs = ours(options.rounds), go(options.rounds)
    print(f"ours  parse {mine['parse']:8.0f} µs  first render {mine['first']:8.0f} µs  render {mine['render']:8.0f} µs")
    if theirs is not None:
        assert mine["output"] == theirs["output"]
        print(f"Go    parse {theirs['parse']:8.0f} µs  {'':24} render {theirs['render']:8.0f} µs")


if __name__ == "__main__":
    main()
