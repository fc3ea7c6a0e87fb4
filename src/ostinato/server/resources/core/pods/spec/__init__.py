"""Pod specs, in Pods and in Pod templates: defaults, validation, warnings."""
