# program: prometheus-operator 0.85.0
# go: github.com/prometheus-operator/prometheus-operator//cmd/operator@v0.85.0
module=$(go mod download -json github.com/prometheus-operator/prometheus-operator@v0.85.0 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
kubectl apply --server-side -f "$module/example/prometheus-operator-crd"
kubectl wait --for=condition=Established crd --all --timeout=30s
setting() { kubectl config view --raw -o "jsonpath={$1}"; }
setting '.users[0].user.client-certificate-data' | base64 -d > client.crt
setting '.users[0].user.client-key-data' | base64 -d > client.key
setting '.clusters[0].cluster.certificate-authority-data' | base64 -d > ca.crt
prometheus-operator --apiserver "$(setting '.clusters[0].cluster.server')" --cert-file client.crt --key-file client.key --ca-file ca.crt \
  --web.listen-address 127.0.0.1:18092 --kubelet-service kube-system/kubelet > log 2>&1 &
trap 'kill %1; tail -n 20 log' EXIT
kubectl apply -f - <<'YAML'
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: one}
spec: {replicas: 2, serviceMonitorSelector: {}, ruleSelector: {}}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}, endpoints: [{port: http}]}
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: rules}
spec: {groups: [{name: g, rules: [{record: "up:sum", expr: sum(up)}]}]}
YAML
kubectl wait --for=condition=Available prometheus/one --timeout=120s
test "$(kubectl get statefulset prometheus-one -o 'jsonpath={.status.readyReplicas}')" = 2
kubectl get secret prometheus-one -o 'jsonpath={.data.prometheus\.yaml\.gz}' | base64 -d | gunzip | grep serviceMonitor/default/web/0
kubectl get configmap prometheus-one-rulefiles-0 -o yaml | grep up:sum
kubectl get endpoints -n kube-system kubelet -o yaml | grep node-1
kubectl scale prometheus one --replicas=2  # its shards
kubectl wait --for=create statefulset/prometheus-one-shard-1 --timeout=60s
kubectl rollout status statefulset/prometheus-one-shard-1 --timeout=60s
kubectl delete prometheus one --timeout=60s
kubectl wait --for=delete pod -l prometheus=one --timeout=60s
