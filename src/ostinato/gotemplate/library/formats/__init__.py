"""Functions that read and write JSON, YAML, TOML and base64."""
