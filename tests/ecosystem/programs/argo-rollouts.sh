# program: Argo Rollouts 1.10.1
# go: github.com/argoproj/argo-rollouts//cmd/rollouts-controller@v1.10.1
module=$(go mod download -json github.com/argoproj/argo-rollouts@v1.10.1 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
for file in "$module"/manifests/crds/*-crd.yaml; do kubectl apply --server-side -f "$file"; done
kubectl wait --for=condition=Established crd --all --timeout=30s
rollouts-controller --kubeconfig "$KUBECONFIG" --leader-elect=false --metricsPort 18090 --healthzPort 18091 > log 2>&1 &
trap 'kill %1; tail -n 20 log' EXIT
kubectl apply -f - <<'YAML'
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1"}]}
YAML
kubectl wait --for=jsonpath='{.status.phase}'=Healthy rollout/web --timeout=60s
kubectl patch rollout web --type=json -p '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]'
kubectl wait --for=jsonpath='{.status.phase}'=Paused rollout/web --timeout=60s
images() { kubectl get pods -l app=web -o 'jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}' | sort | uniq -c | tr -s ' \n' ' '; }
test "$(images)" = " 2 nginx:1 2 nginx:2 "
kubectl patch rollout web --subresource=status --type=merge -p '{"status": {"pauseConditions": null}}'  # what promote does
kubectl wait --for=jsonpath='{.status.phase}'=Healthy rollout/web --timeout=90s
test "$(images)" = " 4 nginx:2 "
kubectl scale rollout web --replicas=2
kubectl wait --for=jsonpath='{.status.availableReplicas}'=2 rollout/web --timeout=60s
kubectl delete rollout web --timeout=60s
kubectl wait --for=delete pod -l app=web --timeout=60s
