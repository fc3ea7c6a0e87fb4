# program: sample-apiserver 0.36.4, aggregated
# go: k8s.io/sample-apiserver@v0.36.4
# commands: etcd
address=$(hostname -I | cut -d' ' -f1)
etcd --data-dir etcd --listen-client-urls http://127.0.0.1:12479 --advertise-client-urls http://127.0.0.1:12479 \
  --listen-peer-urls http://127.0.0.1:12480 > etcd.log 2>&1 &
sample-apiserver --etcd-servers http://127.0.0.1:12479 --secure-port 19443 --cert-dir certificates --kubeconfig "$KUBECONFIG" \
  --authentication-kubeconfig "$KUBECONFIG" --authorization-kubeconfig "$KUBECONFIG" > log 2>&1 &
trap 'kill %1 %2; tail log' EXIT
kubectl create namespace wardle
kubectl apply -f - <<YAML
apiVersion: v1
kind: Service
metadata: {name: api, namespace: wardle}
spec: {ports: [{port: 443, targetPort: 19443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: api, namespace: wardle, labels: {kubernetes.io/service-name: api}}
addressType: IPv4
ports: [{name: "", port: 19443, protocol: TCP}]
endpoints: [{addresses: [$address], conditions: {ready: true}}]
---
apiVersion: v1
kind: Endpoints
metadata: {name: api, namespace: wardle}
subsets: [{addresses: [{ip: $address}], ports: [{port: 19443}]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.wardle.example.com}
spec:
  group: wardle.example.com
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  insecureSkipTLSVerify: true
  service: {name: api, namespace: wardle}
YAML
kubectl wait --for=condition=Available apiservice/v1alpha1.wardle.example.com --timeout=60s
kubectl create -f - <<'YAML'
{apiVersion: wardle.example.com/v1alpha1, kind: Flunder, metadata: {name: one, namespace: default}, spec: {reference: two}}
YAML
kubectl get flunders
kubectl explain flunder
kubectl delete flunder one
