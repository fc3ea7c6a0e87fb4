"""Admission: what may change an object, or refuse it, between its decoding and its storing."""

from ostinato.server.admission.chain import Admission, Plugin

__all__ = ["Admission", "Plugin"]
