"""What an operator decides about admission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """- `enabled`, `disabled`: plugins by kube-apiserver's names, besides those that are on by default.
    - `configuration`: by plugin, what `configuration.read` made of its part of the configuration file.
    """

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    configuration: Mapping[str, Any] = {}
    not_ready_toleration_seconds: int = 300
    unreachable_toleration_seconds: int = 300
