"""Additions to a project: `ostinato add kind`, `add controller` and `add webhook`.

Each returns the new record; `extend` generates its files and merges those that change, such as the webhook server.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from ostinato.api.object import plural_of
from ostinato.kinds.index import MODULES
from ostinato.scaffold import changes, names
from ostinato.scaffold.changes import Change, Versions
from ostinato.scaffold.error import ScaffoldError
from ostinato.scaffold.project import Controller, Kind, Project, Webhook, load_project
from ostinato.scaffold.rendering import render
from ostinato.scaffold.templates import Templates

P = TypeVar("P", Controller, Webhook)


class NewKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind, or a further version of one, which has the plural, the scope and the image of the first by default."""

    kind: str
    group: str = ""  # defaults to that of the project's first kind
    version: str = "v1"
    plural: str = ""
    cluster_scoped: bool = False
    image: str = ""
    controller: bool = True


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of the project or a built-in one, where empty fields match any; or that of a class in a module."""

    kind: str
    group: str = ""
    version: str = ""
    source: str = ""  # the module in the package, such as `ostinato types` writes


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    validating: bool = False
    mutating: bool = False
    conversion: bool = False


def extend(
    root: Path, addition: Callable[[Project], Project], *, force: bool = False, dry_run: bool = False
) -> list[Change]:
    """Apply an addition to the project in a directory; return the changes of its files.

    Raises ScaffoldError if a file to generate exists already. `force`: replace it. `dry_run`: write nothing.
    """
    load_project(root)  # an error if it is not a project
    with changes.locked(root):
        project = load_project(root)
        if project.form:
            raise ScaffoldError(
                f"{root} is a project of the template {project.form}; ostinato add extends projects with controllers, "
                f"so write a module into src/{project.package} instead"
            )
        extended = addition(project)
        _check_sources(root, extended)
        templates = Templates.recorded(project.template)
        files = Versions(render(project, templates), render(extended, templates))
        added = {path: text for path, text in files.new.items() if path not in files.old}
        taken = changes.existing(root, added)
        if taken and not force:
            raise ScaffoldError(f"would replace {', '.join(taken)}; move it away, or replace it with --force")
        replaced = [Change("update", path, files.new[path]) for path in taken]
        others = Versions(files.old, {path: text for path, text in files.new.items() if path not in taken})
        planned = sorted([*replaced, *changes.plan(root, others, "ostinato add")], key=lambda each: each.path)
        if not dry_run:
            changes.apply(root, planned, extended)
    return planned


def _check_sources(root: Path, project: Project) -> None:
    package = root / "src" / project.package
    for part in (*project.controllers, *project.webhooks):
        file = package / f"{part.source}.py"
        if part.source and not file.is_file():
            raise ScaffoldError(f"{file}: no such file; write it with ostinato types CRD.yaml -o {file}")


def add_kind(project: Project, new: NewKind) -> Project:
    names.check_kind(new.kind)
    names.check_version(new.version)
    group = names.check_group(new.group or _first_group(project))
    plural = names.check_plural(new.plural) if new.plural else ""
    image = names.check_image(new.image) if new.image else ""
    _check_new_kind(project, new, group)
    if earlier := project.versions(group, new.kind):
        kind = msgspec.structs.replace(earlier[0], version=new.version, image=image or earlier[0].image)
    else:
        kind = Kind(
            group=group,
            version=new.version,
            kind=new.kind,
            module=_free_module(project, new.kind, group),
            plural=plural,
            namespaced=not new.cluster_scoped,
            image=image,
        )
    if kind.image and not kind.namespaced:
        raise ScaffoldError("--image needs a namespaced kind: its Deployment is in the namespace of the object")
    extended = msgspec.structs.replace(project, kinds=(*project.kinds, kind))
    if earlier or not new.controller:  # a controller of the first version sees all objects, in that version
        return extended
    return add_controller(extended, Subject(kind=new.kind, group=group, version=new.version))


def add_controller(project: Project, subject: Subject, name: str = "") -> Project:
    """Add a controller. `name`: prefix of its module. Defaults to that of the kind."""
    part = _part(project, subject, Controller)
    if name:
        module = names.module_of(names.check_module(name.replace("-", "_")))
        part = msgspec.structs.replace(part, module=module)
    if any(each.module == part.module for each in project.controllers):
        raise ScaffoldError(f"{part.module}_controller.py exists: give the second controller a name with --name")
    return msgspec.structs.replace(project, controllers=(*project.controllers, part))


def add_webhook(project: Project, subject: Subject, hooks: Hooks) -> Project:
    """Add webhooks, also to those that the kind has."""
    if hooks == Hooks():
        raise ScaffoldError("choose the webhooks: --validating, --mutating, --conversion")
    part = _part(project, subject, Webhook)
    old = next((each for each in project.webhooks if each.module == part.module), None)
    if old is not None and (old.group, old.source) != (part.group, part.source):
        raise ScaffoldError(f"{part.module}_webhook.py exists, for another kind of this name; write this one by hand")
    if old is not None and old.version != part.version and (hooks.validating or hooks.mutating):
        raise ScaffoldError(f"{part.kind} has webhooks for {old.version}; the API server converts objects to it")
    if hooks.conversion:
        _check_conversion(project, part)
    old = old or part
    flags = {each: getattr(old, each) or getattr(hooks, each) for each in hooks.__struct_fields__}
    new = msgspec.structs.replace(old, **flags)
    if new in project.webhooks:
        raise ScaffoldError(f"{part.kind} has these webhooks already")
    others = [each for each in project.webhooks if each.module != part.module]
    at = next((n for n, each in enumerate(project.webhooks) if each.module == part.module), len(others))
    return msgspec.structs.replace(project, webhooks=(*others[:at], new, *others[at:]))


def _check_conversion(project: Project, part: Webhook) -> None:
    versions = project.versions(part.group, part.kind)
    if not versions:
        raise ScaffoldError(f"{part.kind} is not a kind of this project; its versions are converted elsewhere")
    if len(versions) < 2:
        raise ScaffoldError(
            f"{part.kind} has one version; add another with ostinato add kind {part.kind} --version v2 first"
        )


def _check_new_kind(project: Project, new: NewKind, group: str) -> None:
    for each in project.kinds:
        if each.group != group:
            continue
        if (each.kind, each.version) == (new.kind, new.version):
            raise ScaffoldError(f"{each.label} exists; choose another kind, or another --version")
        if each.kind == new.kind:
            if new.plural not in ("", each.resource) or (new.cluster_scoped and each.namespaced):
                raise ScaffoldError(f"{each.label} exists: all versions of a kind have the same plural and scope")
        elif _names(each.kind, each.resource) & _names(new.kind, new.plural or plural_of(new.kind)):
            raise ScaffoldError(f"kind {new.kind!r}: {each.kind} has the same names in the API; choose others")


def _names(kind: str, plural: str) -> set[str]:
    return {kind.lower(), f"{kind}List".lower(), plural}


def _part(project: Project, subject: Subject, cls: type[P]) -> P:
    """Return a controller or webhook for the one kind that matches."""
    names.check_any_kind(subject.kind)
    if subject.source:
        names.check_imported(subject.kind)
        source = names.check_module(subject.source)
        return cls(group="", version="", kind=subject.kind, module=names.module_of(subject.kind), source=source)
    own = [
        cls(group=each.group, version=each.version, kind=each.kind, module=each.module)
        for each in project.kinds
        if _matches(subject, each.group, each.version, each.kind)
    ]
    if own:
        groups = {each.group for each in own}
        if len(groups) > 1:
            raise ScaffoldError(
                f"{subject.kind} is in several groups; choose one with --group: {', '.join(sorted(groups))}"
            )
        return own[0]
    builtin = [gvk for gvk in MODULES if _matches(subject, *gvk)]
    if not builtin:
        known = ", ".join(sorted({each.label for each in project.kinds}))
        raise ScaffoldError(
            f"{_shown(subject)} is neither a kind of this project ({known}) nor of Kubernetes; "
            f"add it with ostinato add kind {subject.kind}, or name the module that has its class with --from"
        )
    if len(builtin) > 1:
        choices = ", ".join(f"--group {group or chr(39) * 2} --version {version}" for group, version, _ in builtin)
        raise ScaffoldError(f"{subject.kind} exists several times; choose one of: {choices}")
    group, version, kind = builtin[0]
    return cls(group=group, version=version, kind=kind, module=names.module_of(kind))


def _matches(subject: Subject, group: str, version: str, kind: str) -> bool:
    return kind == subject.kind and subject.group in ("", group) and subject.version in ("", version)


def _shown(subject: Subject) -> str:
    place = "/".join(filter(None, (subject.group, subject.version)))
    return f"{subject.kind} {place}" if place else subject.kind


def _first_group(project: Project) -> str:
    if not project.kinds:
        raise ScaffoldError("the project has no kind yet; set --group")
    return project.kinds[0].group


def _free_module(project: Project, kind: str, group: str) -> str:
    """Return the prefix of the modules of a new kind: with the group if another group has this kind."""
    module = names.module_of(kind)
    taken = {each.module for each in (*project.kinds, *project.controllers, *project.webhooks)}
    if module not in taken:
        return module
    label = group.partition(".")[0].replace("-", "_")
    longer = names.module_of(f"{label}_{module}")
    if longer in taken or not longer[0].isalpha():
        raise ScaffoldError(f"kind {kind!r}: a module {module} exists for another group; choose another kind")
    return longer
