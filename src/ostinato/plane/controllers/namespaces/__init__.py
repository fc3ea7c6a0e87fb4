"""The namespace controller: deletes the content of terminating namespaces."""
