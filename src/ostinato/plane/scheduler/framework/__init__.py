"""The scheduling framework: plugin interface, statuses, cluster events, and the scheduling of one Pod."""
