# program: Prometheus 2.42 (Debian): service discovery
# commands: prometheus
kubectl create deployment web --image=nginx --replicas=2 --port=80
kubectl rollout status deployment/web --timeout=60s
kubectl expose deployment web --port=80
cat > prometheus.yml <<YAML
scrape_configs:
$(for role in node pod service endpoints endpointslice ingress; do
echo "- {job_name: $role, kubernetes_sd_configs: [{role: $role, kubeconfig_file: $KUBECONFIG}]}"; done)
YAML
prometheus --config.file=prometheus.yml --web.listen-address=127.0.0.1:19095 --storage.tsdb.path=data > log 2>&1 &
trap 'kill %1; tail log' EXIT
for _ in $(seq 60); do
  found=$(curl -s http://127.0.0.1:19095/api/v1/targets | "$OSTINATO_PYTHON" -c 'import collections, json, sys
print(sorted(collections.Counter(t["scrapePool"] for t in json.load(sys.stdin)["data"]["activeTargets"]).items()))' || true)
  echo "$found"
  case $found in *"('endpoints', "*"('endpointslice', "*"('node', 2)"*"('pod', 2)"*"('service', 2)"*) exit 0 ;; esac
  sleep 1
done
exit 1
