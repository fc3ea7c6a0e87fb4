# program: sealed-secrets 0.40.0
# go: github.com/bitnami-labs/sealed-secrets//cmd/controller@v0.40.0
module=$(go mod download -json github.com/bitnami-labs/sealed-secrets@v0.40.0 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
kubectl apply --server-side -f "$module/helm/sealed-secrets/crds"
kubectl wait --for=condition=Established crd/sealedsecrets.bitnami.com --timeout=30s
sealed-secrets --kubeconfig "$KUBECONFIG" > log 2>&1 || true &
trap 'kill %1; tail log' EXIT
kubectl wait --for=create secret -n kube-system -l sealedsecrets.bitnami.com/sealed-secrets-key --timeout=60s
