"""Programs that use a cluster with other people's clients, each in a process of its own."""
