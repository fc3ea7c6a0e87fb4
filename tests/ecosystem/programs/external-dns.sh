# program: external-dns 0.20.0
# go: sigs.k8s.io/external-dns@v0.20.0
kubectl create deployment web --image=nginx
kubectl expose deployment web --port=80 --type=ClusterIP
kubectl annotate service web external-dns.alpha.kubernetes.io/internal-hostname=web.example.org
external-dns --kubeconfig "$KUBECONFIG" --source service --provider inmemory --inmemory-zone example.org --registry noop \
  --publish-internal-services --events --min-event-sync-interval 1s --metrics-address 127.0.0.1:18093 > log 2>&1 &
trap 'kill %1; tail -n 20 log' EXIT
address=$(kubectl get service web -o 'jsonpath={.spec.clusterIP}')
until grep -q "CREATE: web.example.org .* A .*$address" log; do sleep 1; done
kubectl annotate service web external-dns.alpha.kubernetes.io/internal-hostname=other.example.org --overwrite
until grep -q "CREATE: other.example.org" log && grep -q "DELETE: web.example.org" log; do sleep 1; done
