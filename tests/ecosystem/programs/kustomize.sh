# program: kustomize 5.7.1
# go: sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
kubectl create deployment web --image=nginx --dry-run=client -o yaml > deployment.yaml
cat > kustomization.yaml <<'YAML'
namePrefix: dev-
resources: [deployment.yaml]
replicas: [{name: web, count: 2}]
configMapGenerator: [{name: settings, literals: [a=1]}]
YAML
kustomize build . | kubectl apply --server-side -f -
kubectl rollout status deployment/dev-web --timeout=60s
kustomize build . | kubectl diff -f -
kustomize build . | kubectl delete -f -
