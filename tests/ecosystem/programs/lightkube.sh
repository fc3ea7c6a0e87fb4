# program: lightkube 1.0.1
# pip: lightkube==1.0.1
python - <<'PY'
from lightkube import ApiError, Client
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Pod

client = Client()
config = ConfigMap(metadata=ObjectMeta(name="settings", namespace="default"), data={"a": "1"})
client.create(config)
client.patch(ConfigMap, "settings", {"data": {"a": "2"}})
assert client.get(ConfigMap, "settings").data == {"a": "2"}
client.apply(ConfigMap(metadata=ObjectMeta(name="applied", namespace="default"), data={"b": "1"}), field_manager="lk")
version = client.get(ConfigMap, "settings").metadata.resourceVersion
client.delete(ConfigMap, "settings")
for event, found in client.watch(ConfigMap, resource_version=version):
    if event == "DELETED":
        assert found.metadata.name == "settings"
        break
try:
    client.get(ConfigMap, "settings")
except ApiError as error:
    assert error.status.code == 404
else:
    raise AssertionError("the object was deleted")
PY
