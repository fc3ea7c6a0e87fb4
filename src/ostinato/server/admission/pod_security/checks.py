"""Checks of the Pod Security Standards, levels baseline and restricted.

Each check returns the reason and the detail of a violation, or None. `versions` lists the checks of each version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from ostinato.api.text.go_format import quote
from ostinato.server.resources.strategy import Json

Finding = tuple[str, str]  # reason, detail
Check = Callable[[Json, Json], Finding | None]  # of the metadata and the spec of a Pod

_CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_SELINUX: Final = frozenset(["", "container_t", "container_init_t", "container_kvm_t"])
_VOLUMES: Final = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP_DEFAULTS: Final = ("runtime/default", "docker/default")


# Inputs


def _containers(spec: Json) -> Iterator[Json]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def _context(holder: Json) -> Json:
    context: Json = holder.get("securityContext") or {}
    return context


def _violating(spec: Json, wrong: Callable[[Json], object]) -> list[str]:
    """The names of the containers whose security context violates a check."""
    return [container["name"] for container in _containers(spec) if wrong(_context(container))]


def unless_windows(check: Check) -> Check:
    """Skip the check for Windows Pods."""
    return lambda metadata, spec: None if (spec.get("os") or {}).get("name") == "windows" else check(metadata, spec)


def unless_own_users(check: Check) -> Check:
    """Skip the check for Pods with a user namespace."""
    return lambda metadata, spec: None if spec.get("hostUsers") is False else check(metadata, spec)


# Messages


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _many(word: str, items: Iterable[object]) -> str:
    return word if len(list(items)) == 1 else f"{word}s"


def _named(containers: list[str]) -> str:
    return f"{_many('container', containers)} {_quoted(containers)}"


def _setters(pod: object, containers: list[str]) -> str:
    """The subjects of a violation: `pod and container "a"`; "" if there are none."""
    return " and ".join([*(["pod"] if pod else []), *([_named(containers)] if containers else [])])


def _uses(word: str, items: list[str]) -> str:
    return f"{_many(word, items)} {_quoted(items)} {'uses' if len(items) == 1 else 'use'}"


# Baseline


def app_armor(metadata: Json, spec: Json) -> Finding | None:
    def wrong(context: Json) -> str:
        kind: str = (context.get("appArmorProfile") or {}).get("type", "RuntimeDefault")
        return "" if kind in ("RuntimeDefault", "Localhost") else kind

    values = sorted({value for holder in (spec, *_containers(spec)) if (value := wrong(_context(holder)))})
    setters = _setters(wrong(_context(spec)), _violating(spec, wrong))
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if annotations:
        setters = " and ".join([*([setters] if setters else []), _many("annotation", annotations)])
        values += annotations
    if not setters:
        return None
    detail = f"{setters} must not set AppArmor profile type to {_quoted(values)}"
    return _many("forbidden AppArmor profile", values), detail


def capabilities(_metadata: Json, spec: Json) -> Finding | None:
    def wrong(context: Json) -> set[str]:
        return set((context.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES

    found = sorted(set[str]().union(*(wrong(_context(container)) for container in _containers(spec))))
    where = f"must not include {_quoted(found)} in securityContext.capabilities.add"
    return ("non-default capabilities", f"{_named(_violating(spec, wrong))} {where}") if found else None


def host_namespaces(_metadata: Json, spec: Json) -> Finding | None:
    found = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return ("host namespaces", ", ".join(found)) if found else None


def host_paths(_metadata: Json, spec: Json) -> Finding | None:
    found = [volume["name"] for volume in spec.get("volumes") or () if "hostPath" in volume]
    return ("hostPath volumes", f"{_many('volume', found)} {_quoted(found)}") if found else None


def host_ports(_metadata: Json, spec: Json) -> Finding | None:
    ports = {
        container["name"]: [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]
        for container in _containers(spec)
    }
    found = sorted({port for each in ports.values() for port in each})
    if not found:
        return None
    containers = [name for name, each in ports.items() if each]
    return "hostPort", f"{_uses('container', containers)} {_many('hostPort', found)} {', '.join(found)}"


def host_probes(_metadata: Json, spec: Json) -> Finding | None:
    hosts = {container["name"]: set(_hosts(container)) for container in _containers(spec)}
    found = sorted(set[str]().union(*hosts.values()))
    if not found:
        return None
    containers = sorted(name for name, each in hosts.items() if each)
    what = _many("probe or lifecycle host", found)
    return "probe or lifecycle host", f"{_uses('container', containers)} {what} {_quoted(found)}"


def _hosts(container: Json) -> Iterator[str]:
    """The hosts in probes and lifecycle hooks; without a host they connect to the Pod."""
    hooks = container.get("lifecycle") or {}
    probes = [container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")]
    for action in (*probes, hooks.get("postStart"), hooks.get("preStop")):
        for field in ("httpGet", "tcpSocket"):
            host = ((action or {}).get(field) or {}).get("host")
            if host:
                yield host


def privileged(_metadata: Json, spec: Json) -> Finding | None:
    found = _violating(spec, lambda context: context.get("privileged"))
    return ("privileged", f"{_named(found)} must not set securityContext.privileged=true") if found else None


def proc_mount(_metadata: Json, spec: Json) -> Finding | None:
    def wrong(context: Json) -> str:
        mount: str = context.get("procMount", "Default")
        return "" if mount == "Default" else mount

    values = sorted({value for container in _containers(spec) if (value := wrong(_context(container)))})
    detail = f"must not set securityContext.procMount to {_quoted(values)}"
    return ("procMount", f"{_named(_violating(spec, wrong))} {detail}") if values else None


def selinux(*more: str) -> Check:
    """The check with further allowed SELinux types."""
    return partial(_selinux, _SELINUX | set(more))


def _selinux(allowed: frozenset[str], _metadata: Json, spec: Json) -> Finding | None:
    def wrong(context: Json) -> bool:
        options = context.get("seLinuxOptions") or {}
        return bool(options.get("type", "") not in allowed or options.get("user") or options.get("role"))

    setters = _setters(wrong(_context(spec)), _violating(spec, wrong))
    if not setters:
        return None
    every = [_context(holder).get("seLinuxOptions") or {} for holder in (spec, *_containers(spec))]
    kinds = sorted({options.get("type", "") for options in every} - allowed)
    data = [f"{_many('type', kinds)} {_quoted(kinds)}"] if kinds else []
    data += [f"{field} may not be set" for field in ("user", "role") if any(options.get(field) for options in every)]
    return "seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"


def _unconfined(context: Json) -> str:
    kind: str = (context.get("seccompProfile") or {}).get("type", "RuntimeDefault")
    return "" if kind in ("RuntimeDefault", "Localhost") else kind


def seccomp_annotations(metadata: Json, spec: Json) -> Finding | None:
    """The check of the alpha annotations, before seccompProfile existed."""
    annotations = metadata.get("annotations") or {}
    keys = {_SECCOMP_OF_POD, *(_SECCOMP_OF_CONTAINER + container["name"] for container in _containers(spec))}
    found = sorted(
        f"{key}={quote(value)}"
        for key, value in annotations.items()
        if key in keys and value not in _SECCOMP_DEFAULTS and not value.startswith("localhost/")
    )
    return ("seccompProfile", f"forbidden {_many('annotation', found)} {', '.join(found)}") if found else None


def seccomp(_metadata: Json, spec: Json) -> Finding | None:
    setters = _setters(_unconfined(_context(spec)), _violating(spec, _unconfined))
    if not setters:
        return None
    values = sorted({value for holder in (spec, *_containers(spec)) if (value := _unconfined(_context(holder)))})
    return "seccompProfile", f"{setters} must not set securityContext.seccompProfile.type to {_quoted(values)}"


def sysctls(*allowed: str) -> Check:
    return partial(_sysctls, frozenset(allowed))


def _sysctls(allowed: frozenset[str], _metadata: Json, spec: Json) -> Finding | None:
    names = [sysctl["name"] for sysctl in _context(spec).get("sysctls") or ()]
    found = [name for name in names if name not in allowed]
    return ("forbidden sysctls", ", ".join(found)) if found else None


def host_process(_metadata: Json, spec: Json) -> Finding | None:
    def wrong(context: Json) -> object:
        return (context.get("windowsOptions") or {}).get("hostProcess")

    setters = _setters(wrong(_context(spec)), _violating(spec, wrong))
    detail = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return ("hostProcess", detail) if setters else None


# Restricted


def escalation(_metadata: Json, spec: Json) -> Finding | None:
    found = _violating(spec, lambda context: context.get("allowPrivilegeEscalation", True))
    detail = f"{_named(found)} must set securityContext.allowPrivilegeEscalation=false"
    return ("allowPrivilegeEscalation != false", detail) if found else None


def all_dropped(_metadata: Json, spec: Json) -> Finding | None:
    def added(context: Json) -> set[str]:
        return set((context.get("capabilities") or {}).get("add") or ()) - {"NET_BIND_SERVICE"}

    kept = _violating(spec, lambda context: "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()))
    details = [f'{_named(kept)} must set securityContext.capabilities.drop=["ALL"]'] if kept else []
    adding = _violating(spec, added)
    if adding:
        found = sorted(set[str]().union(*(added(_context(container)) for container in _containers(spec))))
        details.append(f"{_named(adding)} must not include {_quoted(found)} in securityContext.capabilities.add")
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def volumes(_metadata: Json, spec: Json) -> Finding | None:
    wrong = {
        volume["name"]: next(iter(sorted(set(volume) - {"name"})), "unknown")
        for volume in spec.get("volumes") or ()
        if not _VOLUMES & set(volume)
    }
    if not wrong:
        return None
    kinds = sorted(set(wrong.values()))
    what = f"{_many('restricted volume type', kinds)} {_quoted(kinds)}"
    return "restricted volume types", f"{_uses('volume', list(wrong))} {what}"


def not_root(_metadata: Json, spec: Json) -> Finding | None:
    pod = _context(spec).get("runAsNonRoot")
    setters = _setters(pod is False, _violating(spec, lambda context: context.get("runAsNonRoot") is False))
    if setters:
        return "runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false"
    unset = [] if pod else _violating(spec, lambda context: context.get("runAsNonRoot") is None)
    detail = f"pod or {_named(unset)} must set securityContext.runAsNonRoot=true"
    return ("runAsNonRoot != true", detail) if unset else None


def user(_metadata: Json, spec: Json) -> Finding | None:
    setters = _setters(
        _context(spec).get("runAsUser") == 0, _violating(spec, lambda context: context.get("runAsUser") == 0)
    )
    return ("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def seccomp_set(metadata: Json, spec: Json) -> Finding | None:
    found = seccomp(metadata, spec)
    if found is not None or "seccompProfile" in _context(spec):
        return found
    unset = _violating(spec, lambda context: "seccompProfile" not in context)
    wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return ("seccompProfile", f"pod or {_named(unset)} {wanted}") if unset else None
