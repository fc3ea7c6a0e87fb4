"""The official Python client: objects, patches, watches, custom objects."""

from kubernetes import client, config, watch

config.load_kube_config()
core, apps = client.CoreV1Api(), client.AppsV1Api()
labels = {"app": "web"}
container = client.V1Container(name="web", image="nginx")
template = client.V1PodTemplateSpec(
    metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
)
spec = client.V1DeploymentSpec(replicas=2, selector=client.V1LabelSelector(match_labels=labels), template=template)
apps.create_namespaced_deployment("default", client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec))
for event in watch.Watch().stream(apps.list_namespaced_deployment, "default", timeout_seconds=60):
    if (event["object"].status.ready_replicas or 0) == 2:
        break
else:
    raise AssertionError("the Deployment is not ready")
apps.patch_namespaced_deployment("web", "default", {"spec": {"replicas": 1}})
assert apps.read_namespaced_deployment_scale("web", "default").spec.replicas == 1
pages = core.list_namespaced_pod("default", limit=1)
assert len(pages.items) == 1
assert client.CustomObjectsApi().list_cluster_custom_object("apiregistration.k8s.io", "v1", "apiservices")["items"]
apps.delete_namespaced_deployment("web", "default", propagation_policy="Foreground")
