"""Discovery: the kinds of a server, the REST mapping from kinds to resources, and URL paths."""
