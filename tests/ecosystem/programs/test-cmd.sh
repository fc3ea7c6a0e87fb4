# program: Kubernetes' test/cmd 1.36.4
# commands: curl jq openssl
# timeout: 2400
# WHAT chooses tests, as upstream: WHAT="swagger exec_credentials" runs run_swagger_tests and run_exec_credentials_tests.
# kubectl on PATH must be 1.36; convert needs its plugin kubectl-convert too, and multi_resources github.com. The server has upstream's flags, so it is another one than the runner's.
module=$(go mod download -json k8s.io/kubernetes@v1.36.4 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
mkdir -p kubernetes/test/e2e kubernetes/third_party kubernetes/_output bin
cp -r --no-preserve=mode,ownership "$module"/hack kubernetes/
cp -r --no-preserve=mode,ownership "$module"/test/{cmd,fixtures} kubernetes/test/
cp -r --no-preserve=mode,ownership "$module"/test/e2e/testing-manifests kubernetes/test/e2e/
cp -r --no-preserve=mode,ownership "$module"/third_party/forked kubernetes/third_party/
find kubernetes \( -name '*.sh' -o -name 'kubectl-*' \) -exec chmod +x {} +
mkdir kubernetes/_output/bin
for place in bin kubernetes/_output/bin; do ln -s "$(command -v kubectl)" $place/kubectl; done
root=$PWD/kubernetes
disabled=ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook
disabled=$disabled,StorageObjectInUseProtection
"$OSTINATO_PYTHON" -m ostinato.cli up --nodes 0 --without scheduler --processes 1 --state state --listen 127.0.0.1:16443 \
  --authorization-mode RBAC,AlwaysAllow --enable-admission-plugins LimitRanger,ResourceQuota \
  --disable-admission-plugins "$disabled" --client-ca-file "$root/hack/testdata/ca/ca.crt" \
  --cluster-signing-cert-file "$root/hack/testdata/ca/ca.crt" --cluster-signing-key-file "$root/hack/testdata/ca/ca.key" \
  --token-auth-file "$root/hack/testdata/auth-tokens.csv" > plane.log 2>&1 &
plane=$!
trap 'kill $plane; wait $plane; tail -n 20 $root/../plane.log' EXIT
until grep -q https:// plane.log; do kill -0 $plane; sleep 0.5; done
mkdir tmp
cp state/ca.crt tmp/apiserver.crt  # a certificate that tests put into kubeconfigs
cd kubernetes
export TMPDIR=${root%/kubernetes}/tmp
export KUBE_ROOT=$root THIS_PLATFORM_BIN=$root/../bin SECURE_API_PORT=16443 ALLOW_SKEW=1 KUBE_JUNIT_REPORT_DIR=$root/../junit
unset KUBECONFIG
source hack/lib/init.sh
source hack/lib/test.sh
source test/cmd/legacy-script.sh
record_command() {  # one line for each test; its output is in the log
  echo "=== $1"
  local code result=passes
  set +o errexit  # not "|| result=fails": errexit, which the tests set themselves, would have no effect in them
  (set +o nounset; "$@")
  code=$?
  set -o errexit
  [ $code = 0 ] || result=fails
  echo "=== $1 $result"
  echo "$result $1" >> "$root/../results"
}
kube::util::ensure-temp-dir
kube::util::ensure-gnu-sed
export HOME=$KUBE_TEMP CONTEXT=test SUPPORTED_RESOURCES="*"
kubectl config set-credentials test-admin --token admin-token
kubectl config set-cluster local --insecure-skip-tls-verify --server "https://127.0.0.1:$SECURE_API_PORT"
kubectl config set-context $CONTEXT --user test-admin --cluster local
kubectl config use-context $CONTEXT
kubectl create -f - <<'YAML'
{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "127.0.0.1", "annotations": {"save-managers": "true"}}, "status": {"capacity": {"memory": "1Gi"}}}
YAML
runTests
sort "$root/../results"
! grep fails "$root/../results"
