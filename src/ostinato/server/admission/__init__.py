"""Admission: what may change an object, or refuse it, between its decoding and its storing."""

from ostinato.server.admission.chain import AdmissionChain, Plugin

__all__ = ["AdmissionChain", "Plugin"]
