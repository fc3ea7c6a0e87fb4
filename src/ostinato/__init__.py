"""Ostinato: Kubernetes controllers in Python, and the control plane to run them against, in one process."""
