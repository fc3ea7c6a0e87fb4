"""The API server: a core without I/O, the store, schemas, admission, access; HTTP is an adapter."""
