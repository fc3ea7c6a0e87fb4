# program: Cluster API's suites 1.14.2
# commands: go
# timeout: 3000
# Suites of the controllers with the programs of `ostinato envtest`, not with the runner's server. SUITES names other packages.
suites=${SUITES:-internal/util/ssa/test util/patch/test controllers/clustercache core/reconcilers/machineset}
module=$(go mod download -json sigs.k8s.io/cluster-api@v1.14.2 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
cp -r --no-preserve=mode,ownership "$module" source
cd source
go mod edit -dropreplace sigs.k8s.io/cluster-api/api -require sigs.k8s.io/cluster-api/api@v1.14.2  # a module of its own
for suite in $suites; do
  echo "=== $suite"
  CGO_ENABLED=0 "$OSTINATO_PYTHON" -m ostinato.cli envtest run -- go test -mod=mod -vet=off -timeout 20m -v "./$suite"
done
