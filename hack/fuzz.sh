#!/usr/bin/env bash
# Runs each fuzz target for a time, and goes on after one that fails. What a target finds stays in its package's testdata.
#   hack/fuzz.sh TIME [PATTERN]
set -uo pipefail
cd "$(dirname "$0")/.."
time=$1 pattern=${2:-.}
failed=()
targets=$(grep -rn --include='*_test.go' -E '^func Fuzz[A-Za-z0-9]+\(' operators plans pkg test | sed -E 's#^(.*)/[^/]+:[0-9]+:func (Fuzz[A-Za-z0-9]+).*#\1 \2#' | grep -E "$pattern")
[ -n "$targets" ] || { echo "no fuzz target matches $pattern"; exit 1; }
while read -r folder target; do
  echo "$folder $target…"
  (cd "$folder" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" .) || failed+=("$folder $target")
done <<<"$targets"
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
