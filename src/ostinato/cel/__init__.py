"""CEL, the expression language of Kubernetes: parse, type-check, bound the cost, evaluate; libraries of functions."""
