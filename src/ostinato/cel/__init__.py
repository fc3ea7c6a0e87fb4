"""CEL, the Common Expression Language in Kubernetes' dialect: parse, check, estimate cost, evaluate, libraries."""
