"""CEL, the expression language of Kubernetes: read, checked against schemas, bounded in cost, evaluated."""
