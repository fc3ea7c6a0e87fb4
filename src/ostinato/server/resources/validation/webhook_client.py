"""Validation and defaults of `clientConfig`, shared by CustomResourceDefinitions and admission webhooks."""

from __future__ import annotations

from urllib.parse import urlsplit

from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json

REVIEWS = ("v1", "v1beta1")  # review versions that this server can send
_FORM = "; desired format: https://host[/path]"


def client_faults(client: Json, path: Path) -> list[FieldError]:
    """Validate a clientConfig: a URL or a Service, not both."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [FieldError.required(path, "exactly one of url or service is required")]
    if url is not None:
        return _url_faults(url, path.child("url"))
    assert service is not None
    where = path.child("service")
    # kube-apiserver reports the other field here.
    swapped = {"name": "namespace", "namespace": "name"}
    errors = [FieldError.required(where.child(name)) for name, other in swapped.items() if not service.get(other)]
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        errors.append(
            FieldError.invalid(where.child("port"), port, "port is not valid: must be between 1 and 65535, inclusive")
        )
    return errors + _path_faults(service.get("path", ""), where.child("path"))


def _url_faults(text: str, path: Path) -> list[FieldError]:
    try:
        url = urlsplit(text)
    except ValueError:
        why = f"parse {quote(text)}: missing ']' in host"
        return [FieldError.required(path, f"url must be a valid URL: {why}{_FORM}")]
    errors = []
    if url.scheme != "https":
        errors.append(FieldError.invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    user, at, host = url.netloc.rpartition("@")
    if not host:
        errors.append(FieldError.invalid(path, host, f"host must be specified{_FORM}"))
    if at:
        errors.append(FieldError.invalid(path, user, "user information is not permitted in the URL"))
    if url.fragment:
        errors.append(FieldError.invalid(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        errors.append(FieldError.invalid(path, url.query, "query parameters are not permitted in the URL"))
    return errors


def _path_faults(text: str, path: Path) -> list[FieldError]:
    if text in ("", "/"):
        return []
    if text == "//":
        return [FieldError.invalid(path, text, "segment[0] may not be empty")]
    errors = [] if text.startswith("/") else [FieldError.invalid(path, text, "must start with a '/'")]
    for i, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(FieldError.invalid(path, text, f"segment[{i}] may not be empty"))
        errors += [
            FieldError.invalid(path, text, f"segment[{i}]: {fault}")
            for fault in (names.is_dns1123_subdomain(step) if step else ())
        ]
    return errors


def review_faults(versions: list[str], path: Path, *, detail: str = "") -> list[FieldError]:
    """Validate the review versions of a webhook; `detail` is the message if there are none."""
    if not versions:
        return [FieldError.required(path, detail)]
    errors: list[FieldError] = []
    for i, version in enumerate(versions):
        if version in versions[:i]:
            errors.append(FieldError.invalid(path.index(i), version, "duplicate version"))
            continue
        errors += [FieldError.invalid(path.index(i), version, fault) for fault in names.is_dns1035_label(version)]
    if not any(version in REVIEWS for version in versions):
        errors.append(FieldError.invalid(path, versions, f"must include at least one of {', '.join(REVIEWS)}"))
    return errors
