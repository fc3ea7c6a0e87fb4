"""What the server knows of each kind: how it is named, shaped, defaulted, checked, changed and shown."""
