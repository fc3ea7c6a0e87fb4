"""Structured authentication: --authentication-config, with JWT issuers and limits on anonymous requests.

| module | is |
|---|---|
| `configuration` | the file, read |
| `validation` | what is wrong with it, in the words of kube-apiserver; and its expressions, compiled |
| `expressions` | CEL over claims and users |
| `key_set` | the public keys of an issuer, fetched over HTTPS |
| `issuer` | tokens of one issuer: verified, and mapped to a user |
| `issuers` | all issuers of a configuration, and the exchange of one configuration for the next |
| `reload` | follows the file |
"""
