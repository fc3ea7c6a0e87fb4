"""Resources that are answered, not stored: access and token reviews, component statuses, resource usage."""
