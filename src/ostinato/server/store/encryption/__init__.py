"""Encryption at rest: objects of chosen resources are encrypted in the log, as configured for kube-apiserver.

- `configuration`: reads an EncryptionConfiguration file.
- `encryption`: the providers of each resource.
- `providers`: the ciphers.
- `encrypted_log`: a log that encrypts what another log stores.

The index and its history stay in memory, unencrypted.
"""
