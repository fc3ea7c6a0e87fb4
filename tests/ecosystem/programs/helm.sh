# program: Helm 4.3.1
# go: helm.sh/helm/v4/cmd/helm@v4.3.1
helm create web
sed -i 's/type: ClusterIP/type: NodePort/' web/values.yaml
helm install first web --wait --timeout 90s
helm list | grep deployed
helm upgrade first web --set replicaCount=3 --wait --timeout 90s
test "$(kubectl get deployment first-web -o 'jsonpath={.status.readyReplicas}')" = 3
helm rollback first 1 --wait --timeout 90s
helm history first | grep "Rollback to 1"
helm get manifest first | grep "kind: Deployment"
helm uninstall first --wait
test -z "$(helm list -q)"
