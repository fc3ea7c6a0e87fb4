"""The flowcontrol.apiserver.k8s.io group: FlowSchemas and priority levels."""
