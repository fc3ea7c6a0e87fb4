"""Controllers inside the server: bootstrap, CustomResourceDefinitions, expiry of Events, FlowSchema conditions."""
