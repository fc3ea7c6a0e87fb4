# program: Gatekeeper 3.23.1
# go: github.com/open-policy-agent/gatekeeper/v3@v3.23.1
module=$(go mod download -json github.com/open-policy-agent/gatekeeper/v3@v3.23.1 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
address=$(hostname -I | cut -d' ' -f1)
kubectl apply --server-side -f "$module/deploy/gatekeeper.yaml"
kubectl wait --for=condition=Established crd --all --timeout=30s
kubectl delete deployment,service --all -n gatekeeper-system  # it runs here; a Pod on a simulated node owns its status
kubectl apply -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: local, namespace: gatekeeper-system}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: gatekeeper
    image: gatekeeper
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
YAML
kubectl apply -f - <<YAML
apiVersion: v1
kind: Service
metadata: {name: gatekeeper-webhook-service, namespace: gatekeeper-system}
spec: {ports: [{name: https-webhook-server, port: 443, targetPort: 18443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: gatekeeper, namespace: gatekeeper-system, labels: {kubernetes.io/service-name: gatekeeper-webhook-service}}
addressType: IPv4
ports: [{name: https-webhook-server, port: 18443, protocol: TCP}]
endpoints: [{addresses: [$address], conditions: {ready: true}}]
YAML
mkdir certs audit
POD_NAMESPACE=gatekeeper-system POD_NAME=local gatekeeper --kubeconfig "$KUBECONFIG" --port 18443 --cert-dir certs \
  --health-addr 127.0.0.1:18094 --prometheus-port 18095 --audit-interval 5 --api-cache-dir audit --shutdown-delay 0 > log 2>&1 &
trap 'kill %1; tail -n 30 log' EXIT
secret() { kubectl get secret -n gatekeeper-system gatekeeper-webhook-server-cert -o "jsonpath={.data.$1}" | base64 -d; }
until [ -n "$(secret 'tls\.crt')" ]; do sleep 1; done
for file in ca.crt ca.key tls.crt tls.key; do secret "${file/./\\.}" > "certs/$file"; done
kubectl apply -f "$module/demo/basic/templates/k8srequiredlabels_template.yaml"
kubectl wait --for=jsonpath='{.status.created}'=true constrainttemplate/k8srequiredlabels --timeout=120s
kubectl wait --for=create crd/k8srequiredlabels.constraints.gatekeeper.sh --timeout=30s
kubectl wait --for=condition=Established crd/k8srequiredlabels.constraints.gatekeeper.sh --timeout=30s
kubectl apply -f - <<'YAML'
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sRequiredLabels
metadata: {name: owners}
spec: {match: {kinds: [{apiGroups: [""], kinds: [Namespace]}]}, parameters: {labels: [owner]}}
YAML
while kubectl create namespace unowned --dry-run=server 2> denied; do sleep 1; done
grep 'you must provide labels: {"owner"}' denied
kubectl create -f - <<'YAML'
apiVersion: v1
kind: Namespace
metadata: {name: owned, labels: {owner: me}}
YAML
until kubectl get k8srequiredlabels owners -o 'jsonpath={.status.totalViolations}' | grep '[1-9]'; do sleep 1; done  # audit
kubectl delete k8srequiredlabels owners
kubectl delete constrainttemplate k8srequiredlabels --timeout=60s
