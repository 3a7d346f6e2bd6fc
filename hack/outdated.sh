#!/usr/bin/env bash
# Fails if the CA roots in the manager are older than 90 days, at a time in seconds since 1970 (default now): hack/outdated.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."
roots=golang.org/x/crypto/x509roots/fallback
made=$(go list -m -f '{{.Time.Unix}}' "$roots")
days=$(((${1:-$(date +%s)} - made) / 86400))
if [ "$days" -gt 90 ]; then
  echo "the CA roots in the manager are $days days old: go get $roots@latest" >&2
  exit 1
fi
echo "the CA roots in the manager are $days days old"
