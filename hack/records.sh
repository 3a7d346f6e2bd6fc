#!/usr/bin/env bash
# Has a version of kudo deploy, update and upgrade an Instance on a control plane of its own, and prints what it has written: the records
# that later versions must read (pkg/history/testdata). The folder has kubectl-kudo and manager of the version.
#   hack/records.sh FOLDER >pkg/history/testdata/VERSION.yaml
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 1 ] || { echo "usage: hack/records.sh FOLDER" >&2; exit 2; }
programs=$1
state=$(mktemp -d)
plane() { bin/kudo-local "$@" --name records --state "$state" >&2; }
manager=
finish() {
  [ -z "$manager" ] || kill "$manager" || true
  plane down --delete || true
  rm -rf "$state"
}
trap finish EXIT
plane up --pod-ready-delay=0s
KUBECONFIG=$(bin/kudo-local kubeconfig --name records --state "$state")
export KUBECONFIG
"$programs/kubectl-kudo" init --external-manager --manager-kubeconfig "$state/manager.kubeconfig" >&2
"$programs/manager" --kubeconfig "$state/manager.kubeconfig" --webhook-port 0 --metrics-bind-address 0 --health-probe-bind-address 0 \
  --cache-dir "$state/cache" 2>"$state/manager.log" &
manager=$!

# await N waits until the N-th run of the Instance is complete.
await() {
  bin/kubectl wait instance/site -n lab --for="jsonpath={.status.baseline.revision}=$1" --timeout=2m >&2
  bin/kubectl wait instance/site -n lab --for='jsonpath={.status.aggregatedStatus.status}=COMPLETE' --timeout=2m >&2
}
bin/kubectl create -f hack/testdata/records.yaml >&2
await 1
bin/kubectl patch instance site -n lab --type merge -p '{"spec":{"parameters":{"VALUE":"b","PASSWORD":"second"}}}' >&2
await 2
bin/kubectl patch instance site -n lab --type merge -p '{"spec":{"operatorVersion":{"name":"web-2.0.0"}}}' >&2
await 3
echo "# What the programs of $(basename "$programs") have written on a cluster that no longer exists (hack/records.sh)."
bin/kubectl get secret kudo-history-key -n kudo-system -o yaml
echo ---
bin/kubectl get operatorversions,instances,controllerrevisions -n lab -o yaml
echo ---
bin/kubectl get installations -o yaml
