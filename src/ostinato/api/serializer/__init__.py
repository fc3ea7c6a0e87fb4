"""Typed objects as JSON: type information of classes, lenient decoding, defaulting of omitted fields, overlays."""
