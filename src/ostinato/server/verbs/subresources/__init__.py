"""Handlers of subresources: binding, eviction, scale, token requests, proxy, and connections to Pods."""
