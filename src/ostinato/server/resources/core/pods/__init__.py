"""Pods: strategies of Pods and of their subresources."""
