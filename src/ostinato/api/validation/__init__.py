"""Validation of names, labels, addresses, formats and field values, with kube-apiserver's messages."""
