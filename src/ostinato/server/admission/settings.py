"""Settings of admission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """- `enabled`, `disabled`: --enable-admission-plugins and --disable-admission-plugins.
    - `configuration`: by plugin, the result of `configuration.read`.
    - `allow_privileged`: whether containers may be privileged.
    """

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    configuration: Mapping[str, Any] = {}
    not_ready_toleration_seconds: int = 300
    unreachable_toleration_seconds: int = 300
    allow_privileged: bool = True
