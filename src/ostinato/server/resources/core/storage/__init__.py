"""PersistentVolumes and PersistentVolumeClaims: strategies, validation, volume sources."""
