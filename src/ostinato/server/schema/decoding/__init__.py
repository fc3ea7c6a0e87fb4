"""Decoding of request bodies, as Go decodes them."""
