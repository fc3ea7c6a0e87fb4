# program: kubectl 1.24 to 1.35
# kubectl: 1.24.3 1.34.13 1.35.10
# The environment may name others, separated by spaces: OSTINATO_KUBECTLS, such as those of Google Cloud CLI.
for old in ${kubectls:-kubectl-1.24.3 kubectl-1.34.13 kubectl-1.35.10 ${OSTINATO_KUBECTLS:-}}; do
  echo "=== $old"
  $old version
  $old create deployment web --image=nginx --replicas=2
  $old rollout status deployment/web --timeout=60s
  $old expose deployment web --port=80
  $old get pods,services,endpoints -o wide
  $old apply --server-side -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "1"}
YAML
  $old patch configmap settings -p '{"data":{"a":"2"}}'
  test "$($old get configmap settings -o 'jsonpath={.data.a}')" = 2
  $old set image deployment/web nginx=nginx:2
  $old rollout status deployment/web --timeout=60s
  $old rollout undo deployment/web
  $old scale deployment web --replicas=1
  $old wait --for=condition=Available deployment/web --timeout=60s
  $old autoscale deployment web --max=3
  $old describe deployment web
  $old explain pod.spec.containers.image
  $old auth can-i create pods
  if $old create --help | grep -q ' token '; then $old create token default; fi  # since 1.24
  $old drain node-1 --ignore-daemonsets --force
  $old uncordon node-1
  $old api-resources
  $old diff -f - <<'YAML' || test $? = 1
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "3"}
YAML
  $old delete deployment,service,configmap,hpa --all
done
