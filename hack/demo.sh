#!/usr/bin/env bash
# The main job, from nothing: a control plane, kudo, a package, its plans.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/bin:$PATH
step() { printf '\n\033[1m# %s\033[0m\n' "$1"; }
run() { printf '$ %s\n' "$*"; "$@"; }

step "a local Kubernetes, with kudo installed"
kudo-local up --name demo --with-kudo
KUBECONFIG=$(kudo-local kubeconfig --name demo)
export KUBECONFIG

if kubectl-kudo get instances -o name 2>/dev/null | grep -q '/db$'; then
  step "the package is installed already: run its deploy plan again"
  run kubectl-kudo plan trigger --instance db --name deploy --wait
else
  step "install a package: its deploy plan runs"
  run kubectl-kudo install operators/catalog/postgres/operator --instance db --wait
fi

step "run its backup plan by hand"
run kubectl-kudo plan trigger --instance db --name backup --wait

step "change a parameter: the plan that it triggers runs"
run kubectl-kudo update --instance db -p MEMORY="$((256 + RANDOM % 256))Mi" --wait

step "the plans"
run kubectl-kudo plan status --instance db
run kubectl-kudo plan history --instance db
run kubectl-kudo get all

cat <<END

Look around:  export KUBECONFIG=$KUBECONFIG PATH=$PWD/bin:\$PATH
              kubectl kudo plan status --instance db
              kubectl get instances,pods
Stop:         make demo-down
END
