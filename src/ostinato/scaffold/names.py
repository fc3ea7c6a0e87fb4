"""Names of projects, packages, groups, versions and kinds: what generated code and manifests can hold.

Each check raises a `ScaffoldError` that names the value and what to do. Nothing that passes needs quoting in Python,
YAML, TOML, a Makefile or a path.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from typing import Final

from ostinato.api.object import plural_of
from ostinato.api.validation import names
from ostinato.scaffold.error import ScaffoldError

_PROJECT_LENGTH: Final = 50  # leaves room for "-system" and other suffixes in a label of 63 characters
_KIND_LENGTH: Final = 50  # the name of a sample is a label of 63 characters

_VARIABLE_LENGTH: Final = 20

_is_project = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?").fullmatch
_is_package = re.compile(r"[a-z][a-z0-9_]*").fullmatch
_is_version = re.compile(r"v[1-9][0-9]{0,3}((alpha|beta)[1-9][0-9]{0,3})?").fullmatch
_is_kind = re.compile(r"[A-Z][A-Za-z0-9]*").fullmatch
_is_image = re.compile(r"[a-z0-9][A-Za-z0-9._:/@-]{0,254}").fullmatch

_DISTRIBUTIONS: Final = frozenset(  # needed by a project, in its image or for its development
    {"aiohappyeyeballs", "cryptography", "google-re2", "hatchling", "msgspec", "mypy", "ostinato", "packaging", "pip"}
    | {"pluggy", "pytest", "pyyaml", "ruff", "setuptools", "uv", "uvloop"}
)
_MODULES: Final = _DISTRIBUTIONS | {"re2", "src", "tests", "yaml"}
_CLASSES: Final = frozenset(  # imported by generated modules
    {"Annotated", "Client", "ClusterManager", "Column", "Condition", "Container", "Context", "CustomResource"}
    | {
        "Deployment",
        "DeploymentSpec",
        "Eventually",
        "FieldError",
        "Ge",
        "Iterator",
        "LabelSelector",
        "Len",
        "ObjectMeta",
    }
    | {"Path", "PodSpec", "PodTemplateSpec", "ServiceEndpoint", "SimpleNamespace", "Stored", "Struct", "Webhooks"}
)
_VARIABLES: Final = frozenset(  # used by generated functions
    {"available", "before", "client", "cluster", "condition", "container", "controller", "converter", "ctx"}
    | {
        "defaulter",
        "deployment",
        "errors",
        "eventually",
        "labelled",
        "labels",
        "manager",
        "now",
        "old",
        "path",
        "pytest",
    }
    | {"ready", "validator", "webhooks"}
)


def check_project(name: str) -> str:
    if not _is_project(name) or len(name) > _PROJECT_LENGTH:
        better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")[:_PROJECT_LENGTH].rstrip("-")
        hint = f", for example {better}" if better else ""
        raise ScaffoldError(
            f"project name {name!r}: want at most {_PROJECT_LENGTH} lower-case letters, digits and dashes, "
            f"beginning with a letter{hint}"
        )
    if name in _DISTRIBUTIONS:
        raise ScaffoldError(f"project name {name!r} is that of a package which the project needs; choose another one")
    return name


def check_package(package: str) -> str:
    if not _is_package(package) or len(package) > _PROJECT_LENGTH:
        raise ScaffoldError(
            f"package {package!r}: want at most {_PROJECT_LENGTH} lower-case letters, digits and underscores, "
            "beginning with a letter; set --package"
        )
    if keyword.iskeyword(package):
        raise ScaffoldError(f"package {package!r} is a keyword of Python; set another one with --package")
    if package in sys.stdlib_module_names or package in _MODULES:
        raise ScaffoldError(f"package {package!r} would hide the module of that name; set another one with --package")
    return package


def check_group(group: str) -> str:
    problems = names.is_dns1123_subdomain(group)
    if problems or "." not in group:
        raise ScaffoldError(
            f"group {group!r}: want a domain name with a dot, for example shop.example.dev; set --group"
        )
    if group.endswith((".k8s.io", ".kubernetes.io")) or group in ("k8s.io", "kubernetes.io"):
        raise ScaffoldError(f"group {group!r} is reserved for Kubernetes; set --group to a domain of yours")
    return group


def check_version(version: str) -> str:
    if not _is_version(version):
        raise ScaffoldError(f"version {version!r}: want a version like v1, v1beta1 or v2alpha3; set --version")
    return version


def check_kind(kind: str) -> str:
    if not _is_kind(kind) or len(kind) > _KIND_LENGTH:
        better = "".join(part[:1].upper() + part[1:] for part in re.findall(r"[A-Za-z0-9]+", kind)).lstrip("0123456789")
        hint = f", for example {better}" if better and better != kind and _is_kind(better) else ""
        raise ScaffoldError(f"kind {kind!r}: want at most {_KIND_LENGTH} letters and digits in CamelCase{hint}")
    if hasattr(builtins, kind):
        raise ScaffoldError(f"kind {kind!r} is a built-in name of Python; choose another one")
    if clash := _CLASSES & {kind, f"{kind}Spec"}:
        raise ScaffoldError(f"kind {kind!r}: generated modules import a class {min(clash)}; choose another kind")
    return kind


def check_imported(kind: str) -> str:
    """Check a kind whose class is imported from another module."""
    if kind in _CLASSES:
        raise ScaffoldError(f"kind {kind!r}: generated modules import another class of this name; write it by hand")
    return kind


def check_plural(plural: str) -> str:
    if names.is_dns1035_label(plural):
        raise ScaffoldError(f"plural {plural!r}: want lower-case letters, digits and dashes, for example widgets")
    return plural


def check_image(image: str) -> str:
    if not _is_image(image):
        raise ScaffoldError(f"image {image!r}: want a container image, for example nginx:1.29")
    return image


def check_module(module: str) -> str:
    if not _is_package(module):
        raise ScaffoldError(f"module {module!r}: want lower-case letters, digits and underscores")
    return module


def check_any_kind(kind: str) -> str:
    """Check a kind that may be one of Kubernetes."""
    if not _is_kind(kind):
        raise ScaffoldError(f"kind {kind!r}: want letters and digits in CamelCase")
    return kind


def kind_of_project(name: str) -> str:
    """Return the kind that a project's name suggests: "tea-shop-operator" is "TeaShop"."""
    stem = re.sub(r"-(operator|controller)$", "", name)
    return "".join(part[:1].upper() + part[1:] for part in stem.split("-"))


def snake_case(kind: str) -> str:
    """Return a kind as the name of a module or function: "HTTPRoute" is "http_route"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).lower()


def check_form(form: str) -> str:
    """Return the name of a form of operators, which is one of a directory; ScaffoldError if it cannot be one."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", form):
        raise ScaffoldError(f"form {form!r} is not a name of a template, such as hooks")
    return form


def variable_of(kind: str) -> str:
    """Return the name of a parameter that holds an object of the kind: its last word if the kind is long."""
    name = snake_case(kind)
    if len(name) > _VARIABLE_LENGTH:
        name = name.rpartition("_")[2]
    return f"{name}_object" if _is_taken(name) else name


def function_of(module: str) -> str:
    """Return the name of a controller: "http_route" is "http_routes"."""
    name = plural_of(module)
    return f"{name}_controller" if _is_taken(name) else name


def module_of(name: str) -> str:
    """Return the prefix of the modules of a kind; `ostinato run` ignores modules that begin with `test_`."""
    module = snake_case(name)
    return f"kind_{module}" if module.startswith("test") else module


def _is_taken(name: str) -> bool:
    return keyword.iskeyword(name) or hasattr(builtins, name) or name in _VARIABLES
