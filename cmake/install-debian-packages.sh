#!/bin/bash
# cmake/install-debian-packages.sh KIND... - installs the packages of debian-packages.txt that are missing.
#
#   KIND  compile, build, package, quickstart, tests: the first words of the lines to take
# Asks apt only when something is missing, as root or through sudo. Where another apt or dpkg is at work, as on every cloud machine in
# its first minutes, it says for whom it waits, up to STRATA_APT_PATIENCE seconds (600).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
patience=${STRATA_APT_PATIENCE:-600}
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

# apt-get with its words in the log. apt waits by itself for the locks of dpkg (DPkg::Lock::Timeout), but says so only to a terminal, and
# never for that of the package lists: so the first try waits for nobody, its error names whom, and the tries after it wait.
apt_get() {
    local give_up=$((SECONDS + patience)) timeout=0 said='' status held lock holder
    while :; do
        status=0
        "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive \
            apt-get -o DPkg::Lock::Timeout="$timeout" "$@" >"$log" 2>&1 || status=$?
        [ "$status" -ne 0 ] || return 0
        held=$(grep -m 1 -E 'Could not get lock|Unable to (acquire|lock) ' "$log") || return "$status"
        lock=$(grep -o -m 1 '/[^ ,)]*[^ ,.)/]' <<<"$held" | head -n 1)
        holder=$(sed -n 's/.*It is held by process \([0-9]*\) (\([^)]*\)).*/\2 (process \1)/p' <<<"$held")
        holder=${holder:-another process}
        if [ "$SECONDS" -ge "$give_up" ]; then
            echo "packages: $holder still holds $lock after $patience s. Fix: let it end, then run this again." >&2
            exit 1
        fi
        [ "$said" = "$holder" ] || echo "== packages: waiting for $holder, which holds $lock"
        said=$holder
        sleep 1
        timeout=$((give_up > SECONDS ? give_up - SECONDS : 0))
    done
}
install() { apt_get install -y --no-install-recommends "${missing[@]}"; }

# The package lists may be older than what the mirror holds, or not there at all.
if ! install && ! { apt_get update && install; }; then
    cat "$log" >&2
    exit 1
fi
