# program: descheduler 0.36.0
# go: sigs.k8s.io/descheduler//cmd/descheduler@v0.36.0
nodes() { kubectl get pods -l app=web --field-selector status.phase=Running -o 'jsonpath={.items[*].spec.nodeName}' | tr ' ' '\n' | sort -u | wc -l; }
kubectl cordon node-2
kubectl create deployment web --image=nginx --replicas=4
kubectl rollout status deployment/web --timeout=60s
test "$(nodes)" = 1
kubectl uncordon node-2
cat > policy.yaml <<'YAML'
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: spread
  pluginConfig:
  - name: DefaultEvictor
  - name: RemoveDuplicates
  plugins:
    balance: {enabled: [RemoveDuplicates]}
YAML
descheduler --kubeconfig "$KUBECONFIG" --policy-config-file policy.yaml --secure-port 0 --v 3
for _ in $(seq 60); do
  [ "$(nodes)" = 2 ] && kubectl rollout status deployment/web --timeout=60s && exit 0
  sleep 1
done
exit 1
