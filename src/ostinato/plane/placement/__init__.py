"""Which nodes a Pod may run on: node selectors, taints, resource requests, volume topology."""
