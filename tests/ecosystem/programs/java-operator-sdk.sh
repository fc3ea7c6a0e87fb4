# program: Java Operator SDK 5.1.2
# maven: io.javaoperatorsdk:operator-framework:5.1.2 org.slf4j:slf4j-simple:2.0.17
kubectl apply -f - <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pages.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {plural: pages, singular: page, kind: Page}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
kubectl wait --for=condition=Established crd/pages.example.dev --timeout=30s
java "$HERE/clients/Pages.java" > log 2>&1 &
trap 'kill %1; tail log' EXIT
kubectl apply -f - <<'YAML'
{apiVersion: example.dev/v1, kind: Page, metadata: {name: one, namespace: default}, spec: {text: hello}}
YAML
kubectl wait --for=create configmap/one --timeout=90s
test "$(kubectl get configmap one -o 'jsonpath={.data.text}')" = hello
kubectl delete page one --timeout=60s
