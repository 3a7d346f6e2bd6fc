#!/usr/bin/env bash
# Publishes the image of a release that two machines have built alike, and builds nothing:
#
#   hack/publish.sh FOLDER SUMS IMAGE [FLAG]...
#
# FOLDER has the files of the release, SUMS is the SHA256SUMS of another machine, IMAGE is the repository that the release names, and
# FLAGs are those of kubectl kudo image push.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: hack/publish.sh FOLDER SUMS IMAGE [FLAG]..." >&2; exit 2; }
folder=$1 sums=$2 image=$3
shift 3
[ -n "$image" ] || { echo "IMAGE is empty: name the repository that the release names" >&2; exit 2; }
[ -f "$folder/SHA256SUMS" ] || { echo "$folder has no SHA256SUMS: make release builds a release" >&2; exit 1; }
[ -f "$sums" ] || { echo "SUMS=$sums is no file: name the SHA256SUMS of another machine, which make reproduce compares, too" >&2; exit 1; }
[ ! "$sums" -ef "$folder/SHA256SUMS" ] || { echo "SUMS=$sums is the file of this release: name that of another machine" >&2; exit 1; }
if ! diff "$sums" "$folder/SHA256SUMS" >&2; then
  echo "nothing was published: the first lines (<) are of $sums, the second ones (>) are of $folder" >&2
  exit 1
fi
cd "$folder"
check=(sha256sum --check --quiet --strict)
command -v sha256sum >/dev/null || check=(shasum -a 256 -c)
"${check[@]}" SHA256SUMS || { echo "nothing was published: files of $folder are not those of its SHA256SUMS" >&2; exit 1; }
case $(uname -m) in
  x86_64) processor=amd64 ;;
  aarch64 | arm64) processor=arm64 ;;
  *) processor=$(uname -m) ;;
esac
# only files of SHA256SUMS are used: the other machine has built these
listed() {
  local found
  found=$(awk '{print $2}' SHA256SUMS | grep -E "^$1$") || true
  [ "$(wc -w <<<"$found")" -eq 1 ] || { echo "nothing was published: SHA256SUMS must have one file $1" >&2; exit 1; }
  echo "$found"
}
manager=$(listed 'manager_.*\.oci\.tar')
program=$(listed "kubectl-kudo_.*_$(uname -s | tr '[:upper:]' '[:lower:]')_$processor\\.tar\\.gz")
version=${manager#manager_}
version=${version%.oci.tar}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tar -xzf "$program" -C "$dir" kubectl-kudo
"$dir/kubectl-kudo" image verify "$manager"
"$dir/kubectl-kudo" image push "$manager" "oci://$image:${version//+/-}" "$@"
echo "The image is published. Upload the other files of $folder to the address that the release names."
