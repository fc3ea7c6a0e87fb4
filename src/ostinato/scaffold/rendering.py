"""Rendering: all files of a project from its record. The same record and template give the same files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ostinato.kinds.index import MODULES
from ostinato.scaffold.names import function_of, variable_of
from ostinato.scaffold.project import Controller, Kind, Project, Webhook
from ostinato.scaffold.templates import Templates, Values

_LINE_LENGTH = 120  # of generated code


def render(project: Project, templates: Templates) -> dict[str, str]:
    """Return the texts of the files by path."""
    extras = [*templates.extras, *(["webhook"] if project.webhooks else [])]
    common = {"name": project.name, "package": project.package, "extras": f"[{','.join(extras)}]" if extras else ""}
    if project.form:
        return dict(templates.part("project", {**common, **_form_values(project)}))
    return dict(_files(project, templates, common))


def _form_values(project: Project) -> Values:
    """Return the values about the kind of a project of another form than controllers."""
    (kind,) = project.kinds
    return {
        **_kind_values(project, kind),
        "plural": kind.resource,
        "variable": variable_of(kind.kind),
        "function": function_of(kind.module),
    }


def _files(project: Project, templates: Templates, common: Values) -> Iterator[tuple[str, str]]:
    yield from templates.part("project", common)
    for kind in project.kinds:
        yield from templates.part("kind", {**common, **_kind_values(project, kind)})
    for controller in project.controllers:
        yield from templates.part("controller", {**common, **_controller_values(project, controller)})
    for webhook in project.webhooks:
        values = {**common, **_webhook_values(project, webhook)}
        if webhook.validating or webhook.mutating:
            yield from templates.part("webhook", values)
        if webhook.conversion:
            yield from templates.part("conversion", {**values, **_conversion_values(project, webhook, templates)})
    if project.webhooks:
        yield from templates.part("webhooks", {**common, **_server_values(project)})


def _kind_values(project: Project, kind: Kind) -> Values:
    versions = project.versions(kind.group, kind.kind)
    stored = versions[0]
    return {
        "module": kind.module,
        "group": kind.group,
        "version": kind.version,
        "kind": kind.kind,
        "class": _class_of(project, kind),
        "image": kind.image,
        "plural": kind.plural,
        "cluster_scoped": "" if kind.namespaced else "yes",
        "stored": "yes" if len(versions) > 1 and kind is stored else "",
        "other_name": "" if kind is stored else "yes",
        "object": f"{kind.kind.lower()}-sample",
    }


def _controller_values(project: Project, controller: Controller) -> Values:
    values = _subject_values(project, controller)
    return {
        **values,
        "function": function_of(controller.module),
        "label": controller.kind.lower(),
        "plain": "yes" if values["defined_here"] and not values["image"] else "",
    }


def _webhook_values(project: Project, webhook: Webhook) -> Values:
    hooks = [name for name, wanted in (("defaulter", webhook.mutating), ("validator", webhook.validating)) if wanted]
    module = f"{project.package}.{webhook.module}_webhook"
    return {
        **_subject_values(project, webhook),
        "mutating": "yes" if webhook.mutating else "",
        "validating": "yes" if webhook.validating else "",
        "hook_kinds": ", ".join(hooks),
        "webhook_import": _import(module, ["MANAGED_BY", *_hook_functions(webhook)]),
    }


def _subject_values(project: Project, part: Controller | Webhook) -> Values:
    """Return the values about the kind that a controller or a webhook is for."""
    kind = next((each for each in project.kinds if each.key == part.key), None)
    builtin = kind is None and not part.source
    name = part.kind if kind is None else _class_of(project, kind)
    if builtin:
        subject_import = _import(f"ostinato.kinds.{MODULES[part.key]}", [name])
    else:
        module = part.source if kind is None else f"{kind.module}_{kind.version}"
        subject_import = "\n" + _import(f"{project.package}.{module}", [name])
    return {
        "module": part.module,
        "kind": part.kind,
        "class": name,
        "variable": variable_of(part.kind),
        "kind_module": "" if kind is None else f"{kind.module}_{kind.version}",
        "subject_import": subject_import,
        "builtin": "yes" if builtin else "",
        "first_party": "" if builtin else "yes",
        "defined_here": "" if kind is None else "yes",
        "defined_elsewhere": "yes" if kind is None else "",
        "image": "" if kind is None else kind.image,
    }


def _conversion_values(project: Project, webhook: Webhook, templates: Templates) -> Values:
    stored, *others = project.versions(webhook.group, webhook.kind)
    name = _class_of(project, stored)
    converters, tests, imports = [], [], [_version_import(project, stored)]
    for other in others:
        imports.append(_version_import(project, other))
        for source, target in ((other, stored), (stored, other)):
            values = _pair_values(project, webhook.module, source, target)
            converters.append(templates.text("converter.py", values))
        tests.append(templates.text("conversion_test.py", _pair_values(project, webhook.module, other, stored)))
    functions = _conversion_functions(project, webhook)
    return {
        "stored_version": stored.version,
        "version_imports": "\n".join(sorted(imports, key=_natural)),
        "converters": "\n\n".join(converters).rstrip("\n"),
        "conversion_import": _import(f"{project.package}.{webhook.module}_conversion", functions),
        "stored_import": _import(f"{project.package}.{stored.module}_{stored.version}", [name, f"{name}Spec"]),
        "conversion_tests": "\n\n".join(tests).rstrip("\n"),
    }


def _pair_values(project: Project, module: str, source: Kind, target: Kind) -> Values:
    return {
        "module": module,
        "from_version": source.version,
        "to_version": target.version,
        "from_class": _class_of(project, source),
        "to_class": _class_of(project, target),
    }


def _server_values(project: Project) -> Values:
    imports: dict[str, list[str]] = {}
    for webhook in project.webhooks:
        if functions := _hook_functions(webhook):
            imports[f"{project.package}.{webhook.module}_webhook"] = functions
        if webhook.conversion:
            imports[f"{project.package}.{webhook.module}_conversion"] = _conversion_functions(project, webhook)
    return {
        "hook_imports": "\n".join(
            _import(module, names) for module, names in sorted(imports.items(), key=lambda each: _natural(each[0]))
        ),
        "hook_names": "\n".join(f"    {name}," for names in imports.values() for name in names),
    }


def _hook_functions(webhook: Webhook) -> list[str]:
    wanted = (("default", webhook.mutating), ("validate", webhook.validating))
    return [f"{verb}_{webhook.module}" for verb, is_wanted in wanted if is_wanted]


def _conversion_functions(project: Project, webhook: Webhook) -> list[str]:
    stored, *others = project.versions(webhook.group, webhook.kind)
    pairs = [pair for other in others for pair in ((other.version, stored.version), (stored.version, other.version))]
    return [f"{webhook.module}_{source}_to_{target}" for source, target in pairs]


def _version_import(project: Project, kind: Kind) -> str:
    name = _class_of(project, kind)
    return _import(f"{project.package}.{kind.module}_{kind.version}", [name, f"{name}Spec", f"{name}Status"])


def _class_of(project: Project, kind: Kind) -> str:
    """Return the name of the class of a version: that of the kind, with the version unless it is the first."""
    stored = project.versions(kind.group, kind.kind)[0]
    return kind.kind if kind is stored else f"{kind.kind}{kind.version.capitalize()}"


def _import(module: str, names: Iterable[str]) -> str:
    """Return an import as a formatter would write it."""
    ordered = sorted(
        names, key=lambda name: (len(name) < 2 or not name.isupper(), not name[0].isupper(), _natural(name))
    )
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= _LINE_LENGTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in ordered) + ")"


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key for which v2 precedes v10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"([0-9]+)", text)]
