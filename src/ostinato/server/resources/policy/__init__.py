"""The policy group: PodDisruptionBudgets."""
