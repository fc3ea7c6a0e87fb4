"""The autoscaling group: HorizontalPodAutoscalers, v1 and v2."""
