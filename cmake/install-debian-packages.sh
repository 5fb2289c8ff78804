#!/bin/bash
# cmake/install-debian-packages.sh KIND... - installs the packages of debian-packages.txt that are missing.
#
#   KIND  build, quickstart, tests: the first words of the lines to take
# Asks apt only when something is missing, as root or through sudo.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
missing=()
for kind in "$@"; do
    while read -r package; do
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$status" = installed ] || missing+=("$package")
    done < <(sed -n "s/^$kind //p" "$here/debian-packages.txt")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "== packages: all there"
    exit 0
fi

echo "== packages: installing ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "need root or sudo to install: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}
# The package lists may be older than what the mirror holds, or not there at all.
if ! install >"$log" 2>&1; then
    if ! { "${as_root[@]}" apt-get update && install; } >"$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
fi
