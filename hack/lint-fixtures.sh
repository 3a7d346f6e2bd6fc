#!/usr/bin/env bash
# Checks that each linter of .golangci.yml finds what breaks it: it runs them on a module that breaks all their rules.
#   hack/lint-fixtures.sh golangci-lint command...
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/pkg/fixture"
cp .golangci.yml "$dir/"
cp hack/testdata/lint/*.go "$dir/pkg/fixture/"
{ printf '// Package fixture is longer than a file may be.\npackage fixture\n'; seq -f '// line %g' 400; } >"$dir/pkg/fixture/long.go"
# A module of the name stands for Ginkgo: depguard compares import paths.
ginkgo=github.com/onsi/ginkgo/v2
mkdir "$dir/ginkgo"
printf 'module %s\n\ngo 1.26\n' "$ginkgo" >"$dir/ginkgo/go.mod"
printf '// Package ginkgo is empty.\npackage ginkgo\n' >"$dir/ginkgo/ginkgo.go"
printf 'module kudo.dev/kudo\n\ngo 1.26\n\nrequire %s v2.0.0\n\nreplace %s => ./ginkgo\n' "$ginkgo" "$ginkgo" >"$dir/go.mod"
root=$PWD
found=$(cd "$dir" && go tool -modfile="$root/hack/tools/go.mod" golangci-lint run --uniq-by-line=false ./... 2>&1) && { echo "no linter finds anything in the fixtures"; exit 1; }
for linter in depguard errorlint forbidigo funlen gochecknoinits gocognit godot interfacebloat lll misspell nestif nolintlint revive; do
  grep -q "($linter)" <<<"$found" || { echo "$linter finds nothing in hack/testdata/lint:"; echo "$found"; exit 1; }
done
grep -q "file length is .*(revive)" <<<"$found" || { echo "revive lets a file of 402 lines pass:"; echo "$found"; exit 1; }
for forbidden in time.Now context.Background os.Rename "Status().Patch" "Status().Update"; do
  grep -q "forbidden.*(forbidigo)" <<<"$found" && grep -qF "$forbidden" <<<"$found" || { echo "forbidigo lets $forbidden pass:"; echo "$found"; exit 1; }
done
