"""Endpoints of Services: addresses and ports of Pods, and which controller manages an EndpointSlice."""
