"""Admission policies: MutatingAdmissionPolicy and ValidatingAdmissionPolicy."""
