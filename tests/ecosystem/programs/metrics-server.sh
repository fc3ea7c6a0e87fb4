# program: metrics-server 0.9.0, aggregated
# go: sigs.k8s.io/metrics-server/cmd/metrics-server@v0.9.0
# options: --runtime process
address=$(hostname -I | cut -d' ' -f1)
metrics-server --secure-port 19444 --cert-dir certificates --kubeconfig "$KUBECONFIG" --metric-resolution 15s \
  --kubelet-insecure-tls --kubelet-preferred-address-types InternalIP --authentication-kubeconfig "$KUBECONFIG" --authorization-kubeconfig "$KUBECONFIG" > log 2>&1 &
trap 'kill %1; tail log; kubectl delete pod busy --grace-period=1' EXIT
kubectl apply -f - <<YAML
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: kube-system}
spec: {ports: [{port: 443, targetPort: 19444}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: metrics, namespace: kube-system}
subsets: [{addresses: [{ip: $address}], ports: [{port: 19444}]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: metrics, namespace: kube-system, labels: {kubernetes.io/service-name: metrics}}
addressType: IPv4
ports: [{name: "", port: 19444, protocol: TCP}]
endpoints: [{addresses: [$address], conditions: {ready: true}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics, namespace: kube-system}
YAML
kubectl run busy --image=busybox --command -- sh -c 'while :; do :; done'
kubectl wait --for=condition=Available apiservice/v1beta1.metrics.k8s.io --timeout=90s
for _ in $(seq 60); do kubectl top pod busy && kubectl top node && exit 0; sleep 2; done
exit 1
