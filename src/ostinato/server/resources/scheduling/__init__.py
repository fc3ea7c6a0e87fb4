"""The scheduling.k8s.io group: PriorityClasses."""
