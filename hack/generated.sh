#!/usr/bin/env bash
# Generates deep copies, CRDs, the pages of docs/reference, the health checks of docs/examples/gitops and the diagrams; with "check", into a copy that is compared with what is there.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=$1 gen=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Each package of API types has a folder for its deep copies: all of them have the same name.
apis=(apis/kudo/v1beta1 apis/config/v1alpha1)
for api in "${apis[@]}"; do
  $gen object paths="./$api" output:object:dir="$out/$api"
done
$gen crd paths=./apis/... output:crd:dir="$out/crds"
if [ "$mode" = write ]; then
  for api in "${apis[@]}"; do cp "$out/$api"/*.go "$api/"; done
  rm -f manifests/crds/*.yaml && mkdir -p manifests/crds && cp "$out"/crds/*.yaml manifests/crds/
  go run ./hack/reference -o docs/reference -health docs/examples/gitops
  (cd hack/diagrams && go run . ../../docs/diagrams)
  exit 0
fi
stale=
diff -r "$out/crds" manifests/crds || stale=1
go run ./hack/reference -o "$out/reference" -health "$out/health"
diff -r "$out/reference" docs/reference || stale=1
for check in "$out"/health/*.lua; do diff "$check" "docs/examples/gitops/${check##*/}" || stale=1; done
(cd hack/diagrams && go run . -o "$out/diagrams" ../../docs/diagrams)
diff -r -x '*.d2' "$out/diagrams" docs/diagrams || stale=1
for api in "${apis[@]}"; do diff "$out/$api/zz_generated.deepcopy.go" "$api/zz_generated.deepcopy.go" || stale=1; done
[ -z "$stale" ] || { echo "generated files are out of date: run make generate"; exit 1; }
