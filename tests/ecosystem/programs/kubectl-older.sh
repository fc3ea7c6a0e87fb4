# program: kubectl 1.21 to 1.26
# kubectl: 1.21.14 1.22.17 1.23.17 1.25.16 1.26.15
# timeout: 900
kubectls="kubectl-1.21.14 kubectl-1.22.17 kubectl-1.23.17 kubectl-1.25.16 kubectl-1.26.15"
source "$HERE/kubectl-others.sh"
