#!/usr/bin/env bash
# Fails if the CA roots in the manager are older than 90 days, at a time in seconds since 1970 (default now): hack/outdated.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."
roots=golang.org/x/crypto/x509roots/fallback
# The version of a module without tags has its day: v0.0.0-YYYYMMDDhhmmss-COMMIT.
day=$(awk -v roots="$roots" '$1 == roots {split($2, part, "-"); print substr(part[2], 1, 8)}' go.mod)
days() { # since 1970, of YYYY MM DD
  awk -v y="$1" -v m="$2" -v d="$3" 'BEGIN {if (m <= 2) {y--; m += 12}; print 365*y + int(y/4) - int(y/100) + int(y/400) + int((153*m - 457)/5) + d - 719469}'
}
old=$((${1:-$(date +%s)} / 86400 - $(days "${day:0:4}" "$((10#${day:4:2}))" "$((10#${day:6:2}))")))
if [ "$old" -gt 90 ]; then
  echo "the CA roots in the manager are $old days old: go get $roots@latest" >&2
  exit 1
fi
echo "the CA roots in the manager are $old days old"
