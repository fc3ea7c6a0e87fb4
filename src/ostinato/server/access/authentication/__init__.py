"""Authentication: determine the user of a request.

| module | contains |
|---|---|
| `authenticator` | the union authenticator: tries the others in kube-apiserver's order |
| `assembly` | builds it from the settings |
| `certificates/` | client certificates, request header authenticator |
| `service_accounts/` | service account tokens, bound and legacy |
| `tokens/` | static, bootstrap and webhook tokens; JSON web tokens and keys |
| `oidc/` | `--authentication-config` and `--oidc-*`: JWT authenticators |
"""
