# program: kwok 0.8.0
# go: sigs.k8s.io/kwok/cmd/kwok@v0.8.0
# options: --nodes 0
module=$(go mod download -json sigs.k8s.io/kwok@v0.8.0 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
configs=()
for file in "$module"/kustomize/stage/{node/fast,node/heartbeat-with-lease,pod/fast}/*.yaml; do
  case $file in */kustomization.yaml) ;; *) configs+=(--config "$file") ;; esac
done
kwok --kubeconfig "$KUBECONFIG" --manage-all-nodes=true --node-lease-duration-seconds=40 "${configs[@]}" > kwok.log 2>&1 &
trap 'kill %1' EXIT
kubectl apply -f - <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: kwok-1, annotations: {kwok.x-k8s.io/node: fake}}
spec: {podCIDR: 10.9.0.0/24}
status: {allocatable: {cpu: "32", memory: 64Gi, pods: "110"}, capacity: {cpu: "32", memory: 64Gi, pods: "110"}}
YAML
kubectl wait --for=condition=Ready node/kwok-1 --timeout=60s || { cat kwok.log; exit 1; }
kubectl create deployment web --image=nginx --replicas=20
kubectl rollout status deployment/web --timeout=90s
kubectl delete deployment web
kubectl wait --for=delete pod --all --timeout=60s
