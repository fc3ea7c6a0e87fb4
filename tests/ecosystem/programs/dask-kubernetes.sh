# program: dask-kubernetes operator 2026.3.0
# pip: dask-kubernetes==2026.3.0
# The package has its definitions in parts; these accept any object.
for kind in DaskCluster DaskWorkerGroup DaskJob DaskAutoscaler; do
  singular=$(echo "$kind" | tr '[:upper:]' '[:lower:]')
  kubectl apply --server-side -f - <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${singular}s.kubernetes.dask.org}
spec:
  group: kubernetes.dask.org
  scope: Namespaced
  names: {plural: ${singular}s, singular: $singular, kind: $kind}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.worker.replicas, statusReplicasPath: .status.replicas}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
done
kubectl wait --for=condition=Established crd --all --timeout=60s
kopf run -m dask_kubernetes.operator.controller -A --standalone > log 2>&1 &
trap 'kill %1; tail -n 20 log' EXIT
kubectl apply -f - <<'YAML'
apiVersion: kubernetes.dask.org/v1
kind: DaskCluster
metadata: {name: one}
spec:
  worker:
    replicas: 2
    spec: {containers: [{name: worker, image: dask, args: [dask-worker]}]}
  scheduler:
    spec: {containers: [{name: scheduler, image: dask, args: [dask-scheduler]}]}
    service:
      type: ClusterIP
      selector: {dask.org/cluster-name: one, dask.org/component: scheduler}
      ports: [{name: tcp-comm, port: 8786, targetPort: 8786}]
YAML
kubectl wait --for=create service/one-scheduler --timeout=60s
kubectl wait --for=create deployment/one-scheduler --timeout=60s
kubectl wait --for=create daskworkergroup/one-default --timeout=60s
for _ in $(seq 60); do
  test "$(kubectl get deployments -l dask.org/component=worker -o name | wc -l)" = 2 && break
  sleep 1
done
kubectl wait --for=condition=Available deployment -l dask.org/component=worker --timeout=60s
kubectl delete daskcluster one --timeout=90s
