"""Admission control: plugins that mutate and validate a write between decoding and storing."""

from ostinato.server.admission.chain import AdmissionChain, Plugin

__all__ = ["AdmissionChain", "Plugin"]
