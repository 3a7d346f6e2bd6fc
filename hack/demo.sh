#!/usr/bin/env bash
# The main job, from nothing: a control plane, kudo, a package, its plans, and what its instances share.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/bin:$PATH
# Steps are bold on a terminal.
bold='' plain=''
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
step() { printf '\n%s# %s%s\n' "$bold" "$1" "$plain"; }
run() { printf '$ %s\n' "$*"; "$@"; }
random() { head -c 12 /dev/urandom | base64; }
package=operators/catalog/mariadb/operator
# The pods of the demo are played: nothing is pulled.
registry=registry.example.com/catalog

step "a local Kubernetes, with kudo installed"
kudo-local up --name demo --with-kudo
KUBECONFIG=$(kudo-local kubeconfig --name demo)
export KUBECONFIG

for team in team-a team-b; do
  shared="its install plan makes what all databases share"
  [ $team = team-a ] || shared="its install plan shares what is there"
  if kubectl kudo get instances -n $team -o name 2>/dev/null | grep -q '/db$'; then
    step "$team has its database already: run its deploy plan again"
    run kubectl kudo plan trigger --instance db -n $team --name deploy --wait
  else
    step "the passwords of $team's database, in a Secret"
    kubectl get namespace $team >/dev/null 2>&1 || run kubectl create namespace $team
    if ! kubectl get secret db-login -n $team >/dev/null 2>&1; then
      printf '$ kubectl create secret generic db-login -n %s --from-literal=PASSWORD=… (and of BACKUP_PASSWORD, BACKUP_KEY, BACKUP_CA)\n' $team
      kubectl create secret generic db-login -n $team --from-literal=PASSWORD="$(random)" --from-literal=BACKUP_PASSWORD="$(random)" \
        --from-literal=BACKUP_KEY="$(random)" --from-literal=BACKUP_CA="the certificate of the store"
    fi
    step "install a package for $team: it gets an account with the rights that are listed; $shared, then the deploy plan runs"
    run kubectl kudo install $package --instance db -n $team --parameters-from secret/db-login -p BACKUP_USER=$team -p IMAGE_REGISTRY=$registry \
      --install-parameter STORE_IMAGE_REGISTRY=$registry --create-service-account --yes --wait
  fi
done

step "what the two share: a backup store in a namespace of its own"
run kubectl kudo plan status --operator-version "$(kubectl get operatorversions -n team-a -o jsonpath='{.items[0].metadata.name}')" -n team-a
run kubectl kudo get shared

step "run a backup by hand"
run kubectl kudo plan trigger --instance db -n team-a --name backup --wait

step "the plans"
run kubectl kudo plan status --instance db -n team-a
run kubectl kudo plan history --instance db -n team-a

step "what would go with team-b's version of the operator, and what its Instance would keep"
run kubectl kudo uninstall-version "$(kubectl get operatorversions -n team-b -o jsonpath='{.items[0].metadata.name}')" -n team-b --leave-users --dry-run

cat <<END

Look around:  export KUBECONFIG=$KUBECONFIG PATH=$PWD/bin:\$PATH
              kubectl kudo plan status --instance db -n team-a
              kubectl get instances,installations,pods -A
Stop:         make demo-down
END
