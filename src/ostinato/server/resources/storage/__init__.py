"""The storage.k8s.io group: StorageClasses, CSI drivers and nodes, VolumeAttachments."""
