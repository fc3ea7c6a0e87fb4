"""A CSI driver of our own, for tests: volumes are directories of this machine."""
