"""Handlers of resources without storage: access and token reviews, component statuses, resource usage."""
