# program: kubectl 1.36.4
kubectl version | grep "Server Version: v1.36"
kubectl create deployment web --image=nginx --replicas=3
kubectl rollout status deployment/web --timeout=60s
kubectl set image deployment/web nginx=nginx:2
kubectl rollout status deployment/web --timeout=60s
kubectl scale deployment/web --replicas=1
kubectl expose deployment web --port=80
kubectl rollout undo deployment/web
kubectl autoscale deployment web --max=5
kubectl label deployment web tier=front
kubectl get all -o wide
kubectl describe deployment web | grep "tier=front"
kubectl explain deployment.spec.strategy | grep "rollingUpdate"
kubectl drain "$(kubectl get nodes -o name | head -n 1)" --ignore-daemonsets --delete-emptydir-data --force
kubectl auth can-i '*' '*' | grep yes
kubectl delete deployment web --wait
kubectl wait --for=delete pod --all --timeout=60s
