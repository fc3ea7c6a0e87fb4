"""Admission that asks for rights: roles, certificates, owner references, policies' parameters."""
