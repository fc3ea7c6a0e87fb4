"""Recorded answers of kube-apiserver's aggregation layer."""
