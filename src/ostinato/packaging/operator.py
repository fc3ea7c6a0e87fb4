"""What a program needs in a cluster: the part of a package that is derived from its classes and controllers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ostinato.crd.rbac import Access
from ostinato.webhook.configuration import Endpoint

Json = dict[str, Any]

OWN_NAMESPACE: Final = "{own}"  # not a valid name; stands for the namespace in which the operator runs


class WebhookServer(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook server of the program.

    - `configurations`: the webhook configurations, without CA bundles.
    - `definitions`: the names of the CustomResourceDefinitions that it converts.
    - `certificates`: the directory from which it reads `tls.crt` and `tls.key`. Defaults to "": it needs no files.
    """

    name: str
    endpoint: Endpoint
    port: int
    configurations: Sequence[Json] = ()
    definitions: Sequence[str] = ()
    certificates: str = ""


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `program`: arguments of `ostinato run`: files, modules, packages.
    - `definitions`: CustomResourceDefinitions of its kinds.
    - `owned`: apiVersion and kind of the objects that its controllers create, by name of the definition.
    - `rules`: permissions; the namespace may be OWN_NAMESPACE. They include leader election only if `lease` is set.
    - `certificate_rules`: permissions of webhook servers that make their own certificates.
    - `lease`: name of the Lease, if the program itself sets up leader election. Defaults to "".
    """

    program: Sequence[str]
    definitions: Sequence[Json] = ()
    owned: dict[str, Sequence[tuple[str, str]]] = {}
    rules: Sequence[Access] = ()
    certificate_rules: Sequence[Access] = ()
    lease: str = ""
    webhooks: Sequence[WebhookServer] = ()
    certificate_option: str = ""  # of `ostinato run --webhook-certificates`

    @property
    def all_rules(self) -> list[Access]:
        return [*self.rules, *self.certificate_rules]


def with_certificate_files(operator: Operator, directory: str) -> Operator:
    """Return the operator with webhook servers that read their certificates from a directory."""
    servers = [msgspec.structs.replace(each, certificates=directory) for each in operator.webhooks]
    return msgspec.structs.replace(
        operator, webhooks=servers, certificate_rules=(), certificate_option=directory if servers else ""
    )
