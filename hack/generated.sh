#!/usr/bin/env bash
# Generates deep copies and CRDs; with "check", into a copy that is compared with what is there.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=$1 gen=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
$gen object paths=./apis/... output:object:dir="$out/deepcopy" crd paths=./apis/... output:crd:dir="$out/crds"
if [ "$mode" = write ]; then
  cp "$out"/deepcopy/*.go apis/kudo/v1beta1/
  rm -f manifests/crds/*.yaml && mkdir -p manifests/crds && cp "$out"/crds/*.yaml manifests/crds/
  exit 0
fi
diff -r "$out/crds" manifests/crds && diff "$out/deepcopy/zz_generated.deepcopy.go" apis/kudo/v1beta1/zz_generated.deepcopy.go ||
  { echo "generated files are out of date: run make generate"; exit 1; }
