"""Typed objects as JSON: type information of classes, lenient decoding, omitted zero structs, overlays."""
