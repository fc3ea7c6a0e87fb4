"""Leader election: the lease, the elector, and the deadline after which a former leader sends nothing."""
