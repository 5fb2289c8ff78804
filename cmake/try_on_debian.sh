#!/bin/bash
# cmake/try_on_debian.sh [OPTION ...] RELEASE [COMMAND [ARG ...]] - runs a command of this tree on a bare Debian of that release.
#
#   cmake/try_on_debian.sh 13                            both commands of the README: examples/quickstart.sh, then tests/run.sh
#   cmake/try_on_debian.sh 12 tests/run.sh -R layering   one of them
#
#   RELEASE          12, 13, or a code name
#   --keep FOLDER    keep the Debian in FOLDER; if there is one already, use it, with the build trees that are in it
#   --ccache FOLDER  compilers in there use this cache of ours
#   --mirror URI     where packages come from; default: where apt on this machine takes them from
#   --with FILE      a copy of it is /strata/with/FILE there
#
# By hand, outside of the everyday tests: it takes packages of a gigabyte, a whole build and root. Needs mmdebstrap. What is tried is
# the working tree: tracked files and new ones that git does not ignore, and ../shared beside it if it is there.
set -euo pipefail

fail() {
    echo "try_on_debian: $*" >&2
    exit 2
}

# The half that runs in namespaces of its own, so that mounts and processes end with the script, however it ends.
if [ "${1:-}" = --inside ]; then
    root=$2 cache=$3 shared=$4
    shift 4
    mount --bind "$root" "$root"  # a mount of its own, as / is anywhere else: `ip netns` makes it a slave
    mount -t proc proc "$root/proc"
    for shown in /dev /dev/shm /sys; do mount --bind "$shown" "$root$shown"; done
    mount -o remount,bind,ro "$root/sys"
    [ -z "$shared" ] || { mount --bind "$shared" "$root/strata/shared" && mount -o remount,bind,ro "$root/strata/shared"; }
    [ -z "$cache" ] || mount --bind "$cache" "$root/root/.cache/ccache"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
        chroot "$root" /bin/bash -c 'cd /strata/tree && exec "$@"' bash "$@"
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
keep='' cache='' mirror='' with=''
while [[ ${1:-} == --* ]]; do
    [ $# -ge 2 ] || fail "$1 wants a value"
    case $1 in
        --keep) keep=$2 ;;
        --ccache) cache=$2 ;;
        --mirror) mirror=$2 ;;
        --with) with=$2 ;;
        *) fail "no option $1; there are --keep, --ccache, --mirror and --with" ;;
    esac
    shift 2
done
[ $# -ge 1 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
case $1 in
    12) suite=bookworm ;;
    13) suite=trixie ;;
    *) suite=$1 ;;
esac
shift
[ "$(id -u)" -eq 0 ] || fail "needs root, for chroot and mounts"
command -v mmdebstrap >/dev/null || fail "needs mmdebstrap: apt-get install mmdebstrap"
[ -z "$cache" ] || [ -d "$cache" ] || fail "no folder $cache to cache in"
[ -z "$with" ] || [ -f "$with" ] || fail "no file $with to take along"
if [ -z "$mirror" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
    [ -n "$mirror" ] || fail "apt names no mirror of Debian here: run apt-get update, or say --mirror URI"
fi

if [ -n "$keep" ]; then
    mkdir -p "$keep"
    root=$(cd "$keep" && pwd)
else
    root=$(mktemp -d)
    # Nothing is mounted in there: mounts are in the namespace of the half below, which has ended.
    trap 'rm -rf --one-file-system "$root"' EXIT
fi
if [ ! -e "$root/strata/made" ]; then
    [ -z "$(ls -A "$root")" ] || fail "$root is neither empty nor a Debian that an earlier call has finished: remove it, or name another folder"
    echo "== Debian $suite from $mirror into $root"
    options=()
    while IFS= read -r option; do options+=("--aptopt=$option"); done \
        < <(apt-config dump Acquire | grep -E '^Acquire::(Check-(Valid-Until|Date)|https?(::[^ ]*)?::Proxy) ' || true)
    mmdebstrap --quiet --variant=minbase --include=ca-certificates "${options[@]}" "$suite" "$root" "$mirror"
    mkdir -p "$root/strata" && touch "$root/strata/made"
fi
found=$(. "$root/etc/os-release" && echo "${VERSION_CODENAME:-}")
[ "$found" = "$suite" ] || fail "$root holds Debian $found, not $suite: name another folder to keep it in"

echo "== this tree into $root/strata/tree"
tree=$root/strata/tree
mkdir -p "$tree" "$root/strata/shared" "$root/root/.cache/ccache"
# Only what differs is written, with the time of now: what was built there of a file that has changed since may be younger than that file is here.
new=$root/strata/new
rm -rf "$new" && mkdir "$new"
(cd "$here" && git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar -c --null -T - --owner=0 --group=0) | tar -x -C "$new"
(cd "$tree" && find . \( -path ./build -o -path ./quickstart \) -prune -o ! -type d -print0) | while IFS= read -r -d '' file; do
    [ -e "$new/$file" ] || [ -L "$new/$file" ] || rm -f "$tree/$file"
done
(cd "$new" && find . ! -type d -print0) | while IFS= read -r -d '' file; do
    cmp -s "$new/$file" "$tree/$file" || { mkdir -p "$(dirname "$tree/$file")" && cp -P --preserve=mode "$new/$file" "$tree/$file"; }
done
rm -rf "$new"
rm -rf "$root/strata/with"
[ -z "$with" ] || { mkdir "$root/strata/with" && cp "$with" "$root/strata/with/"; }
shared=''
[ ! -d "$here/../shared" ] || shared=$(cd -P "$here/../shared" && pwd)
[ -n "$shared" ] || rmdir "$root/strata/shared"

set -m
inside=''
stop() {
    [ -z "$inside" ] || { kill -KILL "$inside" && wait "$inside"; } 2>/dev/null || true
    exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM HUP
in_debian() {
    echo "== on Debian $suite: $*"
    local begin=$SECONDS status=0
    # A job of its own: commands in there start with SIGINT as it should be, and what ends this script ends all of them.
    unshare --mount --pid --fork --kill-child bash "${BASH_SOURCE[0]}" --inside "$root" "$cache" "$shared" "$@" </dev/null &
    inside=$!
    wait "$inside" || status=$?
    inside=''
    echo "== on Debian $suite: $* ended with $status after $(((SECONDS - begin) / 60)):$(printf %02d $(((SECONDS - begin) % 60)))"
    return "$status"
}
if [ $# -gt 0 ]; then
    in_debian "$@"
else
    in_debian examples/quickstart.sh
    in_debian tests/run.sh
fi
