"""OIDC: JWT authenticators of --authentication-config and --oidc-*, and the anonymous configuration.

| module | contains |
|---|---|
| `configuration` | decoding of AuthenticationConfiguration |
| `validation` | validation with kube-apiserver's messages; compiled expressions |
| `expressions` | CEL over claims and users |
| `key_set` | public keys of an issuer, fetched over HTTPS |
| `issuer` | authenticator of one issuer: verification, claim mappings |
| `issuers` | all authenticators of a configuration; replacement on reload |
| `flags` | the --oidc-* options as a configuration |
| `reload` | reload of the file |
"""
