# program: kube-controller-manager and kube-scheduler 1.36.4
# commands: kube-controller-manager kube-scheduler
# options: --bare
openssl genrsa -out sa.key 2048
kube-controller-manager --kubeconfig "$KUBECONFIG" --service-account-private-key-file sa.key --leader-elect=true \
  --secure-port 0 > controllers.log 2>&1 &
kube-scheduler --kubeconfig "$KUBECONFIG" --leader-elect=true --secure-port 0 > scheduler.log 2>&1 &
trap 'kill %1 %2; tail controllers.log scheduler.log' EXIT
kubectl apply -f - <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: n1}
YAML
kubectl patch node n1 --subresource=status --type=merge -p \
  '{"status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"110"},"capacity":{"cpu":"8","memory":"8Gi","pods":"110"}}}'
kubectl patch node n1 --subresource=status --type=merge -p \
  '{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Test","message":"","lastHeartbeatTime":"2040-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
kubectl create deployment web --image=nginx --replicas=3
kubectl wait --for=create pod -l app=web --timeout=60s
kubectl wait --for=condition=PodScheduled pod -l app=web --timeout=60s
kubectl create namespace passing
kubectl wait --for=create serviceaccount/default -n passing --timeout=60s
kubectl delete namespace passing --timeout=60s
