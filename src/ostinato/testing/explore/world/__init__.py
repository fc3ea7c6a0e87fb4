"""One world: a server from an image, replicas of the operator, users, faults, and the record of what happened."""
