"""CSI volumes of a node: drivers that register at its plugin directory, and the volumes that they mount.

| module | contains |
|---|---|
| `plugin_watcher` | registration of plugins by sockets in `plugins_registry` |
| `drivers` | the drivers that are registered now |
| `csi_node` | what the node publishes of them: CSINode, Node |
| `sources` | a volume of a Pod or PersistentVolume, as a driver needs it |
| `requests` | requests to drivers: secrets, tokens, information about the Pod |
| `records` | which volumes are mounted, on disk |
| `attachments` | waiting for the attachment of a volume; `volumesInUse` of the Node |
| `volumes` | staging, publishing, expansion and their reverse |
"""
