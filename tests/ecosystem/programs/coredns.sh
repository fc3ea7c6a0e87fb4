# program: CoreDNS 1.15 (plugin kubernetes)
# go: github.com/coredns/coredns@v1.15.0
kubectl create deployment web --image=nginx --replicas=2 --port=80
kubectl expose deployment web --port=80
kubectl rollout status deployment/web --timeout=60s
cat > Corefile <<EOC
.:10054 {
  kubernetes cluster.local { kubeconfig $KUBECONFIG ostinato
  }
}
EOC
coredns -conf Corefile > log 2>&1 &
trap 'kill %1; cat log' EXIT
address=$(kubectl get service web -o 'jsonpath={.spec.clusterIP}')
for _ in $(seq 30); do
  "$OSTINATO_PYTHON" "$HERE/clients/resolve.py" 10054 web.default.svc.cluster.local "$address" && exit 0
  sleep 1
done
exit 1
