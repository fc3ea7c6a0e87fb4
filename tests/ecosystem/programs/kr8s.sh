# program: kr8s 0.20.15
# pip: kr8s==0.20.15
python - <<'PY'
import kr8s
from kr8s.objects import ConfigMap, Deployment, Pod

pod = Pod.gen(name="one", image="nginx")
pod.create()
pod.wait("condition=Ready", timeout=60)
pod.label(tier="front")
assert [each.name for each in kr8s.get("pods", label_selector="tier=front")] == ["one"]
config = ConfigMap({"metadata": {"name": "settings"}, "data": {"a": "1"}})
config.create()
config.patch({"data": {"a": "2"}})
assert ConfigMap.get("settings").data.a == "2"
pod.delete()
pod.wait("delete", timeout=60)
assert kr8s.api().version()["minor"] == "36"
PY
