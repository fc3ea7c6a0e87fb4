"""Objects of a package: the Operator, the OperatorVersion and the Instance that are created from its files."""

from __future__ import annotations

import msgspec

from ostinato.api.meta import ObjectMeta
from ostinato.frontends.plans.api import (
    OPERATOR_LABEL,
    Instance,
    InstanceSpec,
    Operator,
    OperatorSpec,
    OperatorVersion,
    OperatorVersionSpec,
    Parameter,
    Reference,
    Task,
    operator_version_name,
)
from ostinato.frontends.plans.package.files import FileParameter, PackageError, PackageFiles
from ostinato.frontends.plans.parameters import stored


class Package(msgspec.Struct, frozen=True):
    """What is installed: an operator and one version of it."""

    operator: Operator
    version: OperatorVersion
    source: str = ""

    @property
    def name(self) -> str:
        return self.operator.metadata.name

    def instance(self, name: str = "", parameters: dict[str, str] | None = None) -> Instance:
        """Return an Instance of this version. `name`: defaults to OPERATOR-instance."""
        spec = InstanceSpec(operator_version=Reference(name=self.version.metadata.name))
        if parameters:
            spec.parameters = parameters
        metadata = ObjectMeta(name=name or f"{self.name}-instance", labels={OPERATOR_LABEL: self.name})
        return Instance(metadata=metadata, spec=spec)


def package_of(files: PackageFiles) -> Package:
    """Build the objects of a package. Raises PackageError with all problems of its tasks."""
    problems = [problem for task in files.operator.tasks or () for problem in task_problems(task, files)]
    if problems:
        raise PackageError("\n".join(problems))
    given = files.operator
    spec = OperatorSpec(
        description=given.description,
        kudo_version=given.kudo_version,
        kubernetes_version=given.kubernetes_version,
        maintainers=given.maintainers or [],
        url=given.url,
        namespace_manifest=given.namespace_manifest,
    )
    version = OperatorVersionSpec(
        operator=Reference(name=given.name, kind="Operator"),
        version=given.operator_version,
        app_version=given.app_version,
        templates=dict(files.templates),
        tasks=given.tasks or [],
        parameters=[parameter_of(each) for each in files.params.parameters or ()],
        plans=given.plans or {},
    )
    name = operator_version_name(given.name, given.app_version, given.operator_version)
    return Package(
        Operator(metadata=ObjectMeta(name=given.name), spec=spec),
        OperatorVersion(metadata=ObjectMeta(name=name), spec=version),
        files.source,
    )


def parameter_of(given: FileParameter) -> Parameter:
    """Return a parameter as an OperatorVersion holds it; it is required unless the file says otherwise."""
    return Parameter(
        name=given.name,
        display_name=given.display_name,
        description=given.description,
        required=True if given.required is None else given.required,
        default=stored(given.default, given.type),
        trigger=given.trigger,
        type=given.type,
        immutable=bool(given.immutable),
        enum=None if given.enum is None else [stored(each, given.type) or "" for each in given.enum],
    )


def task_problems(task: Task, files: PackageFiles) -> list[str]:
    """Return what is wrong with a task of a package."""
    at = f"{files.source}/operator.yaml: task {task.name}"
    problems: list[str] = []
    needed: list[str] = []
    match task.kind:
        case "Apply" | "Delete":
            needed = task.spec.resources or []
        case "Toggle":
            needed = task.spec.resources or []
            if not task.spec.parameter:
                problems.append(f"{at}: toggle task does not have parameter specified")
        case "Pipe":
            needed = [task.spec.pod]
            if not task.spec.pipe:
                problems.append(f"{at}: does not have pipe files specified")
        case "KudoOperator":
            needed = [task.spec.parameter_file] if task.spec.parameter_file else []
        case "Dummy":
            pass
        case other:
            problems.append(
                f"{at}: unknown task kind {other}; kinds are Apply, Delete, Toggle, Pipe, KudoOperator, Dummy"
            )
    problems += [f"{at}: missing template: {name}" for name in needed if name not in files.templates]
    return problems
