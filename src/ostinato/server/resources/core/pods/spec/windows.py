"""Validation of Windows options: user names, GMSA credentials, HostProcess containers."""

from __future__ import annotations

import re

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json

_LARGEST_CREDENTIALS = 64 * 1024
_LONGEST_DOMAIN = 256
_LONGEST_USER = 104
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NET_BIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS = re.compile(r"(?:[a-zA-Z0-9](?:[-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9](?:[-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?")
_NOT_IN_NAMES = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_NOTHING = re.compile(r"[. ]+")


def validate_windows_options(options: Json | None, path: Path) -> list[FieldError]:
    """Validate the windowsOptions of a Pod or a container."""
    if options is None:
        return []
    errors: list[FieldError] = []
    name, credentials, user = (
        options.get(k) for k in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName")
    )
    if name is not None:
        at = path.child("gmsaCredentialSpecName")
        errors += [FieldError.invalid(at, name, text) for text in names.is_dns1123_subdomain(name)]
    if credentials is not None:
        at = path.child("gmsaCredentialSpec")
        if not credentials:
            errors.append(FieldError.invalid(at, credentials, "gmsaCredentialSpec cannot be an empty string"))
        elif names.byte_length(credentials) > _LARGEST_CREDENTIALS:
            errors.append(FieldError.invalid(at, credentials, "gmsaCredentialSpec size must be under 64 KiB"))
    if user is not None:
        errors += [
            FieldError.invalid(path.child("runAsUserName"), user, f"runAsUserName{text}") for text in _user(user)
        ]
    return errors


def _user(text: str) -> list[str]:
    r"""Validate a Windows user name, such as `DOMAIN\user`."""
    if not text:
        return [" cannot be an empty string"]
    if _CONTROL.search(text):
        return [" cannot contain control characters"]
    if text.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, separator, user = text.rpartition("\\")
    found = []
    if names.byte_length(domain) >= _LONGEST_DOMAIN:
        found.append(f"'s Domain length must be under {_LONGEST_DOMAIN} characters")
    if separator and not (_NET_BIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
        found.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        found.append("'s User cannot be empty")
    elif names.byte_length(user) > _LONGEST_USER:
        found.append(f"'s User length must not be longer than {_LONGEST_USER} characters")
    if _NOTHING.fullmatch(user):
        found.append("'s User cannot contain only periods or spaces")
    if _NOT_IN_NAMES.search(user):
        found.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return found


def validate_host_processes(spec: Json, path: Path) -> list[FieldError]:
    """Validate HostProcess containers: all or none of a Pod, with the host's network."""
    of_pod = _host_process(spec)
    errors: list[FieldError] = []
    total = found = 0
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(kind) or ()):
            own = _host_process(container)
            if own is not None and of_pod is not None and own != of_pod:
                at = path.child(kind).index(i).child("securityContext", "windowsOptions", "hostProcess")
                was = "true" if of_pod else "false"
                detail = f"pod hostProcess value must be identical if both are specified, was {was}"
                errors.append(FieldError.invalid(at, own, detail))
            total += 1
            found += bool(of_pod if own is None else own)
    if found and found != total:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(FieldError.invalid(path, "", detail))
    if found and not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(FieldError.invalid(path.child("hostNetwork"), False, detail))  # noqa: FBT003
    return errors


def _host_process(holder: Json) -> bool | None:
    options: Json = (holder.get("securityContext") or {}).get("windowsOptions") or {}
    return options.get("hostProcess")
