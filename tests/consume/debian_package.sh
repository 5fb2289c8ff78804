#!/bin/bash
# tests/consume/debian_package.sh CPACK BUILD SOURCE VERSION FOLDER - packs what BUILD has built, and holds the .deb to what it should say and hold.
set -euo pipefail
cpack=$1 build=$2 source=$3 version=$4 work=$5
wrong=0
expect() { # WORDS COMMAND...: the command succeeds
    local words=$1
    shift
    "$@" || { echo "wrong: $words"; wrong=1; }
}
has() { grep -qxF -e "$2" <<<"$1"; }      # a line of a text
names() { grep -qE -e "$2" <<<"$1"; }     # an expression in a text
lacks() { ! grep -qE -e "$2" <<<"$1"; }

rm -rf "$work"
mkdir -p "$work"
# Quick to compress; else as it ships. A umask of somebody careful must not reach the package.
(umask 077 && cd "$work" && DEBFULLNAME='Ann Example' DEBEMAIL=ann@example.org SOURCE_DATE_EPOCH=1700000000 \
    "$cpack" --config "$build/CPackConfig.cmake" -G DEB -B "$work" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip >"$work/log" 2>&1) ||
    { cat "$work/log"; exit 1; }
architecture=$(dpkg --print-architecture)
package=$work/strata_${version}_$architecture.deb
[ -f "$package" ] || { echo "no $package was made, but:" && ls "$work" && cat "$work/log" && exit 1; }

field() { dpkg-deb --field "$package" "$1"; }
expect Package test "$(field Package)" = strata
expect Version test "$(field Version)" = "$version"
expect Architecture test "$(field Architecture)" = "$architecture"
expect Section test "$(field Section)" = libdevel
expect Maintainer test "$(field Maintainer)" = 'Ann Example <ann@example.org>'
expect Description names "$(field Description)" '^composable C\+\+20 training'
expect Installed-Size test "$(field Installed-Size)" -gt 1000

# One list says what is installed where strata is built, and what the package depends on.
depends=$(field Depends | sed 's/, */\n/g')
recommends=$(field Recommends | sed 's/, */\n/g')
while read -r name; do
    case $name in
        libtorch-dev) expect "Depends: a libtorch-dev from .. to: $depends" test "$(grep -cE '^libtorch-dev \((>=|<<) ' <<<"$depends")" = 2 ;;
        *-dev) expect "Depends: $name" has "$depends" "$name" ;;
        *) expect "Recommends: $name" has "$recommends" "$name" ;;
    esac
done < <(sed -n 's/^build //p' "$source/cmake/debian-packages.txt")
expect 'Depends: the libraries of the command' names "$depends" '^libc6 \(>= '
expect 'Recommends: g++' has "$recommends" g++
expect 'Depends: nothing that only builds strata' lacks "$depends" '^(ccache|ninja-build|cmake|g\+\+|libgtest-dev|clang-format)'

list=$(dpkg-deb --fsys-tarfile "$package" | tar -tv --full-time)
files=$(sed 's/.* \.\//\//' <<<"$list")
library=$(grep -E '/libstrata\.a$' <<<"$files" || true)
expect 'libstrata.a' names "$library" '^/usr/lib/(.*/)?libstrata\.a$'
for file in /usr/bin/strata /usr/bin/strata-train /usr/bin/strata-memory /usr/bin/strata-doctor /usr/include/strata/strata.hpp /usr/include/strata/core/impl/error.ipp \
    "${library%libstrata.a}cmake/strata/strata-config.cmake" "${library%libstrata.a}cmake/strata/strata-compiled-targets.cmake" \
    "${library%libstrata.a}pkgconfig/strata.pc" /usr/share/doc/strata/{copyright,changelog.gz,README.md} /usr/share/man/man1/strata.1.gz \
    /usr/share/doc/strata/examples/CMakeLists.txt; do
    expect "no $file" has "$files" "$file"
done
expect 'a licence that every Debian has' lacks "$files" '/LICENSE$'
expect 'the quickstart, which needs the source tree' lacks "$files" '/quickstart\.sh$'
expect 'files beyond /usr' lacks "$files" '^/(usr$)?[^u/]'
# Every page and example of the tree, every header that a room lists: what is new is packed without being named here.
while read -r file; do expect "no $file in the package" has "$files" "/usr/share/doc/strata/$file"; done \
    < <(cd "$source" && find docs examples -type f ! -name quickstart.sh)
while read -r file; do expect "no $file in the package" has "$files" "/usr/$file"; done \
    < <(cd "$source" && find include -name '*.hpp' ! -name 'nccl_comm.hpp' ! -name 'rank_order_sum.hpp' ! -name 'cuda_device.hpp')
wrong_owner=$(awk '$2 != "root/root" && $2 != "0/0"' <<<"$list")
expect "owned by others: $wrong_owner" test -z "$wrong_owner"
wrong_mode=$(awk '$1 !~ /^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwxrwxrwx)$/' <<<"$list")
expect "unusual permissions: $wrong_mode" test -z "$wrong_mode"

# Nothing in it knows where it was built.
dpkg-deb --extract "$package" "$work/root"
told=$(grep -rIlF -e "$build" -e "$source/" "$work/root" || true)
expect "paths of this machine in: $told" test -z "$told"
manual=$(gzip -dc "$work/root/usr/share/man/man1/strata.1.gz")
expect 'manual: strata data' names "$manual" '^\.SH STRATA DATA$'
expect 'manual: strata train' names "$manual" '^\.SH STRATA TRAIN$'
expect 'manual: strata launch' names "$manual" '^\.SH STRATA LAUNCH$'
expect changelog names "$(gzip -dc "$work/root/usr/share/doc/strata/changelog.gz")" \
    '^ -- Ann Example <ann@example.org>  Tue, 14 Nov 2023 22:13:20 \+0000$'
expect 'the command runs' test "$("$work/root/usr/bin/strata" --version)" = "strata $version"

rm -rf "$work/root" "$work/_CPack_Packages"
[ "$wrong" = 0 ] && echo "the package is right"
