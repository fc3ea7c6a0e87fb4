"""Configuration of hooks: what `hook --config` prints, in the versions v1 and v0, checked and as bindings."""
