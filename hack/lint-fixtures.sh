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
# Empty modules stand for those that depguard knows by their import paths, and an empty package for the API.
go=$(go list -m -f '{{.GoVersion}}')
printf 'module kudo.dev/kudo\n\ngo %s\n' "$go" >"$dir/go.mod"
stand_in() { # module, package below it
  mkdir -p "$dir/modules/$1/$2"
  printf 'module %s\n\ngo %s\n' "$1" "$go" >"$dir/modules/$1/go.mod"
  printf '// Package empty is empty.\npackage empty\n' >"$dir/modules/$1/$2/empty.go"
  printf 'require %s %s.0.0\nreplace %s => ./modules/%s\n' "$1" "$3" "$1" "$1" >>"$dir/go.mod"
}
stand_in github.com/onsi/ginkgo/v2 . v2
stand_in github.com/sigstore/sigstore . v1
stand_in github.com/stretchr/testify . v1
stand_in oras.land/oras-go/v2 content/file v2
stand_in github.com/onsi/gomega types v1
# ginkgolinter knows assertions by their type.
cat >"$dir/modules/github.com/onsi/gomega/types/empty.go" <<'END'
// Package types has the type of an assertion.
package types

// Assertion is what Expect returns.
type Assertion interface{ To(matcher any) bool }
END
cat >"$dir/modules/github.com/onsi/gomega/gomega.go" <<'END'
// Package gomega begins assertions.
package gomega

import "github.com/onsi/gomega/types"

// Expect begins an assertion.
func Expect(any) types.Assertion { return nil }
END
mkdir -p "$dir/pkg/bare"
printf 'package bare\n' >"$dir/pkg/bare/bare.go" # revive: no comment
mkdir -p "$dir/apis/kudo/v1beta1"
printf '// Package v1beta1 is empty.\npackage v1beta1\n\n// Empty is empty.\nconst Empty = ""\n' >"$dir/apis/kudo/v1beta1/empty.go"
root=$PWD
found=$(cd "$dir" && go tool -modfile="$root/hack/tools/go.mod" golangci-lint run --uniq-by-line=false ./... 2>&1) && { echo "no linter finds anything in the fixtures"; exit 1; }
for linter in $(sed -n '/^  enable:/,/^  settings:/s/^    - //p' .golangci.yml); do
  grep -q "($linter)" <<<"$found" || { echo "$linter finds nothing in hack/testdata/lint:"; echo "$found"; exit 1; }
done
for bound in "is too long" "has too many statements"; do
  grep -q "$bound.*(funlen)" <<<"$found" || { echo "funlen has no bound \"$bound\":"; echo "$found"; exit 1; }
done
for rule in exported package-comments argument-limit; do
  grep -q "^[^ ].* $rule: .*(revive)" <<<"$found" || { echo "revive has no rule $rule:"; echo "$found"; exit 1; }
done
grep -q "file length is .*(revive)" <<<"$found" || { echo "revive lets a file of 402 lines pass:"; echo "$found"; exit 1; }
for list in ginkgo sigstore testify archives; do
  grep -q "from list '$list'.*(depguard)" <<<"$found" || { echo "depguard has no list $list:"; echo "$found"; exit 1; }
done
for forbidden in time.Now time.Since context.Background context.TODO os.Rename time.Sleep "Status().Patch" "Status().Update"; do
  # The message names what is forbidden. The line of the source below it may hold more, so that a search of all output proves nothing.
  grep "(forbidigo)" <<<"$found" | grep -q "use of \`[^\`]*${forbidden//./\\.}\` forbidden" || { echo "forbidigo lets $forbidden pass:"; echo "$found"; exit 1; }
done
grep -q "sleep_test.go.*time.Sleep.*(forbidigo)" <<<"$found" || { echo "forbidigo lets a test sleep:"; echo "$found"; exit 1; }
