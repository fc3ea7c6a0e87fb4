# program: kubectl 1.20.2 (Debian)
# The environment names the program: OSTINATO_OLD_KUBECTL.
old=$OSTINATO_OLD_KUBECTL
$old version --short
$old create deployment web --image=nginx --replicas=2
$old rollout status deployment/web --timeout=60s
$old get pods -o wide
$old apply -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "1"}
YAML
$old patch configmap settings -p '{"data":{"a":"2"}}'
test "$($old get configmap settings -o 'jsonpath={.data.a}')" = 2
$old describe deployment web
$old explain pod.spec.containers.image
$old delete deployment web
