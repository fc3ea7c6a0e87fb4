"""The plugins VolumeBinding, VolumeRestrictions and VolumeZone."""
