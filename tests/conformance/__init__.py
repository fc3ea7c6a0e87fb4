"""Kubernetes' conformance suite, built from its Go modules and run against `ostinato up`."""
