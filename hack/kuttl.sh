#!/usr/bin/env bash
# Builds kuttl from its module: hack/kuttl.sh VERSION FILE. kuttl runs its cases by Go's package testing, which asks runners for a method
# more since Go 1.26: the copy that is built has it.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
module=$(go mod download -json "github.com/kudobuilder/kuttl@$1" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",$/\1/p')
[ -n "$module" ] || { echo "the module of kuttl $1 cannot be downloaded" >&2; exit 1; }
cp -r "$module" sources
chmod -R u+w sources
cd sources
grep -q ModulePath pkg/test/utils/testing.go || printf '\nfunc (testDeps) ModulePath() string { return "" }\n' >> pkg/test/utils/testing.go
go build -o "$2" ./cmd/kubectl-kuttl
