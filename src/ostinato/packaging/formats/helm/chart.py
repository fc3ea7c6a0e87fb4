"""The files of a chart."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.packaging.formats.helm.inputs import condition_of, helm_inputs, helpers
from ostinato.packaging.formats.helm.template import escaped, template_text
from ostinato.packaging.formats.helm.values import chart_values, values_schema, values_yaml
from ostinato.packaging.headers import HEADER, TEMPLATE_HEADER
from ostinato.packaging.manifest import Manifest, extended, go_text
from ostinato.packaging.objects.everything import all_objects
from ostinato.packaging.package import Package

Json = dict[str, Any]

_KEEP: Final = {"helm.sh/resource-policy": "keep"}
_IGNORED: Final = ".git/\n*.part\n"


def helm_chart(package: Package) -> dict[str, str]:
    """Return the contents of the chart's files, by name."""
    values = chart_values(package)
    schema = json.dumps(values_schema(values), indent=2, ensure_ascii=False)
    files = {
        "Chart.yaml": HEADER + encode_yaml(_chart(package)).decode(),
        "values.yaml": HEADER + "\n" + values_yaml(values),
        "values.schema.json": schema + "\n",
        ".helmignore": HEADER + _IGNORED,
        "templates/_helpers.tpl": TEMPLATE_HEADER + helpers(package),
        "templates/NOTES.txt": TEMPLATE_HEADER + _notes(package),
    }
    by_file: dict[str, list[Manifest]] = {}
    for each in all_objects(helm_inputs(package)):
        if each.feature != "namespace":
            by_file.setdefault(each.file, []).append(_kept(each) if each.feature == "crds" else each)
    for name, manifests in by_file.items():
        text = template_text(manifests, partial(condition_of, package))
        check = _namespace_check(package) if name == "webhook-services.yaml" else ""
        files[f"templates/{name}"] = TEMPLATE_HEADER + check + text
    return files


def _kept(definition: Manifest) -> Manifest:
    """Return a definition that survives the removal of the chart: with it, all objects of its kind would be deleted."""
    metadata = definition.object["metadata"]
    annotations = extended(metadata["annotations"], _KEEP)
    return definition._replace(object={**definition.object, "metadata": {**metadata, "annotations": annotations}})


def _chart(package: Package) -> Json:
    project, olm = package.project, package.overrides.olm
    people = [{"name": each.name, "email": each.email} for each in olm.maintainers or project.authors if each.name]
    optional: Json = {
        "keywords": list(olm.keywords or project.keywords),
        "maintainers": [{word: text for word, text in each.items() if text} for each in people],
        "home": next((url for name, url in sorted(project.urls.items()) if name.lower() == "homepage"), ""),
        "sources": sorted(url for name, url in project.urls.items() if name.lower() in ("repository", "source")),
    }
    return {
        "apiVersion": "v2",
        "type": "application",
        "name": package.name,
        "version": package.version,
        "appVersion": package.version,
        "description": package.description,
        "kubeVersion": f">={olm.min_kube_version}-0",
        **{field: value for field, value in optional.items() if value},
    }


def _namespace_check(package: Package) -> str:
    """Return an action that refuses a release in another namespace than that of the webhooks' certificate."""
    message = (
        f"the webhooks of {package.name} are reached in the namespace {package.namespace}; "
        f"install the chart with --namespace {package.namespace}"
    )
    return (
        f"{{{{- if ne .Release.Namespace {go_text(package.namespace)} }}}}\n"
        f"{{{{- fail {go_text(message)} }}}}\n{{{{- end }}}}\n"
    )


def _notes(package: Package) -> str:
    kinds = [each["spec"]["names"]["plural"] + "." + each["spec"]["group"] for each in package.operator.definitions]
    watched = f"Its kinds: {', '.join(kinds)}\n" if kinds else ""
    deployment = f'deployment/{{{{ include "{package.name}.fullname" . }}}}'
    status = f"kubectl --namespace {{{{ .Release.Namespace }}}} rollout status {deployment}\n"
    return f"{escaped(package.description)}\n\n{watched}{status}"
