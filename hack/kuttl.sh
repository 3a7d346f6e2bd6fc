#!/usr/bin/env bash
# Builds kuttl from its module: hack/kuttl.sh VERSION FILE. Ends with 2 if the module cannot be downloaded. kuttl runs its cases by Go's package
# testing, which requires one more method of test runners since Go 1.26: the copy that is built has it.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
answer=$(go mod download -json "github.com/kudobuilder/kuttl@$1") || { echo "download kuttl $1: $answer" >&2; exit 2; }
cp -r "$(sed -n 's/^[[:space:]]*"Dir": "\(.*\)",$/\1/p' <<< "$answer")" sources
chmod -R u+w sources
cd sources
grep -q ModulePath pkg/test/utils/testing.go || printf '\nfunc (testDeps) ModulePath() string { return "" }\n' >> pkg/test/utils/testing.go
go build -o "$2" ./cmd/kubectl-kuttl
