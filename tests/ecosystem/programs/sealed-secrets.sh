# program: sealed-secrets 0.40.0
# go: github.com/bitnami-labs/sealed-secrets//cmd/controller@v0.40.0
# go: github.com/bitnami-labs/sealed-secrets//cmd/kubeseal@v0.40.0
# options: --runtime process
module=$(go mod download -json github.com/bitnami-labs/sealed-secrets@v0.40.0 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
kubectl apply --server-side -f "$module/helm/sealed-secrets/crds"
kubectl create serviceaccount -n kube-system sealed-secrets-controller
kubectl create clusterrolebinding sealed-secrets --clusterrole=cluster-admin --serviceaccount=kube-system:sealed-secrets-controller
kubectl apply -f - <<YAML
apiVersion: v1
kind: Service
metadata: {name: sealed-secrets-controller, namespace: kube-system}
spec: {selector: {app: sealed-secrets}, ports: [{name: http, port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: sealed-secrets-controller, namespace: kube-system}
spec:
  selector: {matchLabels: {app: sealed-secrets}}
  template:
    metadata: {labels: {app: sealed-secrets}}
    spec:
      serviceAccountName: sealed-secrets-controller
      volumes: [{name: programs, hostPath: {path: $(dirname "$(command -v sealed-secrets)")}}]
      containers:
      - name: controller
        image: sealed-secrets
        command: [/programs/sealed-secrets]
        volumeMounts: [{name: programs, mountPath: /programs, readOnly: true}]
        env: [{name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
YAML
trap 'kubectl logs -n kube-system deployment/sealed-secrets-controller; kubectl scale -n kube-system deployment/sealed-secrets-controller --replicas=0' EXIT
kubectl rollout status -n kube-system deployment/sealed-secrets-controller --timeout=120s
kubectl create secret generic login --from-literal=password=example --dry-run=client -o yaml | kubeseal --format yaml > sealed.yaml
! grep example sealed.yaml
kubectl apply -f sealed.yaml
kubectl wait --for=condition=Synced sealedsecret/login --timeout=60s
test "$(kubectl get secret login -o 'jsonpath={.data.password}' | base64 -d)" = example
kubectl delete sealedsecret login
kubectl wait --for=delete secret/login --timeout=60s
