# program: Cluster API's suites 1.14.2
# commands: go
# timeout: 3000
# Suites of the controllers with the programs of `ostinato envtest`, not with the runner's server. SUITES names other packages.
suites="internal/util/ssa/test util/patch/test controllers/clustercache controllers/crdmigrator core/webhooks/admission/test
  core/reconcilers/machine core/reconcilers/machineset core/reconcilers/machinedeployment core/reconcilers/machinehealthcheck core/reconcilers/clusterclass
  core/reconcilers/topology/cluster/structuredmerge"
suites=${SUITES:-$suites}
module=$(go mod download -json sigs.k8s.io/cluster-api@v1.14.2 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
cp -r --no-preserve=mode,ownership "$module" source
cd source
go mod edit -dropreplace sigs.k8s.io/cluster-api/api -require sigs.k8s.io/cluster-api/api@v1.14.2  # a module of its own
for suite in $suites; do
  echo "=== $suite"
  CGO_ENABLED=0 "$OSTINATO_PYTHON" -m ostinato.cli envtest run -- go test -mod=mod -vet=off -timeout 20m -v "./$suite"
done
