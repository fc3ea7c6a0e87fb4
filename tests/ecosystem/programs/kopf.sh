# program: kopf 1.45.2
# pip: kopf==1.45.2
kubectl apply -f - <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
kubectl wait --for=condition=Established crd/gadgets.example.dev --timeout=30s
cat > operator.py <<'PY'
import kopf

@kopf.on.create("gadgets")
def created(body, patch, **_):
    patch.status["seen"] = "created"

@kopf.on.update("gadgets", field="spec")
def updated(patch, **_):
    patch.status["seen"] = "updated"

@kopf.on.delete("gadgets")
def deleted(**_):
    pass
PY
kopf run --standalone --namespace default operator.py > log 2>&1 &
trap 'kill %1; tail log' EXIT
kubectl apply -f - <<'YAML'
{apiVersion: example.dev/v1, kind: Gadget, metadata: {name: one}, spec: {size: 1}}
YAML
kubectl wait --for=jsonpath='{.status.seen}'=created gadget/one --timeout=60s
kubectl patch gadget one --type=merge -p '{"spec":{"size":2}}'
kubectl wait --for=jsonpath='{.status.seen}'=updated gadget/one --timeout=60s
kubectl delete gadget one --timeout=60s
