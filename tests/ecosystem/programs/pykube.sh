# program: pykube-ng 23.6.0
# pip: pykube-ng==23.6.0 setuptools<80
python - <<'PY'
import os

import pykube

api = pykube.HTTPClient(pykube.KubeConfig.from_file(os.environ["KUBECONFIG"]))
pykube.ConfigMap(api, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}).create()
found = pykube.ConfigMap.objects(api).get(name="settings")
found.obj["data"]["a"] = "2"
found.update()
found.reload()
assert found.obj["data"] == {"a": "2"}
assert {node.name for node in pykube.Node.objects(api)}
found.delete()
PY
