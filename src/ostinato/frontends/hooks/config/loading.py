"""Load the configuration of a hook from the output of `hook --config`: YAML or JSON, version v1 or v0."""

from __future__ import annotations

from typing import Any

from ostinato.api.wire.json import DecodeError
from ostinato.api.wire.yaml import decode_yaml
from ostinato.frontends.hooks.config.bindings import HookConfig
from ostinato.frontends.hooks.config.fields import ConfigError, Fields, kind_of
from ostinato.frontends.hooks.config.v0 import config_v0
from ostinato.frontends.hooks.config.v1 import config_v1


def load_config(data: bytes | str, time_zone: str = "UTC") -> HookConfig:
    """Return the configuration. Raises ConfigError, which names the field.

    `time_zone`: of schedules without `TZ=`. Defaults to UTC.
    """
    try:
        document: Any = decode_yaml(data)
    except DecodeError as error:
        raise ConfigError(f"the output of --config is neither YAML nor JSON: {error}") from None
    if document is None:
        raise ConfigError("the output of --config is empty; print a configuration with at least one binding")
    if not isinstance(document, dict):
        raise ConfigError(f"the output of --config is {kind_of(document)}, expected an object with configVersion")
    fields = Fields(document)
    version = fields.raw("configVersion")
    if "configVersion" not in document:
        return config_v0(fields, time_zone)
    if version != "v1":
        raise ConfigError(f"configVersion: {version!r} is not supported; use v1")
    return config_v1(fields, time_zone)
