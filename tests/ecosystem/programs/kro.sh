# program: kro 0.9.4
# go: github.com/kubernetes-sigs/kro/cmd/controller@v0.9.4
module=$(go mod download -json github.com/kubernetes-sigs/kro@v0.9.4 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
find "$module/helm" -name '*.yaml' -path '*crds*' -exec kubectl apply --server-side -f {} \;
kubectl wait --for=condition=Established crd --all --timeout=30s
kro --metrics-bind-address=0 --health-probe-bind-address=0 > kro.log 2>&1 &
trap 'kill %1; tail -n 20 kro.log' EXIT
kubectl apply -f - <<'YAML'
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: webapp}
spec:
  schema:
    apiVersion: v1alpha1
    kind: WebApp
    spec: {name: string, replicas: integer | default=2}
    status: {ready: "${deployment.status.readyReplicas}"}
  resources:
  - id: deployment
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "${schema.spec.name}"}
      spec:
        replicas: ${schema.spec.replicas}
        selector: {matchLabels: {app: "${schema.spec.name}"}}
        template:
          metadata: {labels: {app: "${schema.spec.name}"}}
          spec: {containers: [{name: web, image: nginx}]}
YAML
kubectl wait --for=jsonpath='{.status.state}'=Active resourcegraphdefinition/webapp --timeout=60s
kubectl apply -f - <<'YAML'
apiVersion: kro.run/v1alpha1
kind: WebApp
metadata: {name: one}
spec: {name: one}
YAML
kubectl wait --for=jsonpath='{.status.state}'=ACTIVE webapp/one --timeout=60s
test "$(kubectl get deployment one -o 'jsonpath={.status.readyReplicas}')" = 2
kubectl delete webapp one --timeout=60s
kubectl delete resourcegraphdefinition webapp --timeout=60s
