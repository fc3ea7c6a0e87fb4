"""The verbs: what the server does on a resource, a file each."""
