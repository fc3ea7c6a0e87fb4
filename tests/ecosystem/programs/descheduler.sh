# program: descheduler 0.36.0
# go: sigs.k8s.io/descheduler//cmd/descheduler@v0.36.0
kubectl create deployment web --image=nginx --replicas=4
kubectl rollout status deployment/web --timeout=60s
kubectl taint node "$(kubectl get pods -o 'jsonpath={.items[0].spec.nodeName}')" special=true:NoSchedule
cat > policy.yaml <<'YAML'
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: taints
  pluginConfig: [{name: RemovePodsViolatingNodeTaints}, {name: DefaultEvictor}]
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
YAML
descheduler --kubeconfig "$KUBECONFIG" --policy-config-file policy.yaml --bind-address 127.0.0.1 --secure-port 0 -v 2 2>&1 | tee log
grep "Evicted pod" log
kubectl rollout status deployment/web --timeout=60s
