#!/usr/bin/env bash
# Builds a release anew, in an empty folder with an empty build cache, another home and another time zone, and compares its checksums:
#
#   hack/reproduce.sh VERSION SUMS IMAGE URL [CATALOG_URL [VULNDB]]
set -euo pipefail
version=$1 sums=$(realpath "$2") image=$3 url=$4 catalog=${5:-} vulndb=${6:-}
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
git clone -q --branch "$version" . "$dir/sources"
GOMODCACHE=$(go env GOMODCACHE) && export GOMODCACHE
cd "$dir/sources"
HOME=$dir/home GOCACHE=$dir/cache TZ=Asia/Kathmandu make --no-print-directory release VERSION="$version" IMAGE="$image" URL="$url" CATALOG_URL="$catalog" VULNDB="$vulndb"
if diff "$sums" "dist/release/$version/SHA256SUMS"; then
  echo "$version is the same: $(wc -l < "$sums") files"
else
  echo "$version differs: the first lines (<) are of $sums, the second ones (>) were built here" >&2
  exit 1
fi
