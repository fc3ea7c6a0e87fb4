"""Controllers of Services: EndpointSlices, Endpoints and mirrored EndpointSlices."""
