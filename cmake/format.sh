#!/bin/bash
# cmake/format.sh [--check] [FILE ...] - formats the C++ files of the tree, or those named, as .clang-format says.
#
#   --check  changes nothing: prints the files that differ, one a line, and exits with 1 if there are any
#
# Versions of clang-format differ in what they make of the same file, so it is version 14 or none: without it nothing is done, and the
# exit status is 77. All files means those that git knows or could be given, or without git those of the folders that hold code.
set -euo pipefail

check=''
if [ "${1:-}" = --check ]; then
    check=1
    shift
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

tool=''
for candidate in "${STRATA_CLANG_FORMAT:-clang-format-14}" clang-format; do
    if [ -z "$tool" ] && [[ $("$candidate" --version 2>/dev/null || true) =~ version\ 14\. ]]; then tool=$candidate; fi
done
if [ -z "$tool" ]; then
    echo "format: there is no clang-format 14. Fix: apt-get install clang-format-14, or say where one is with STRATA_CLANG_FORMAT." >&2
    exit 77
fi

files=("$@")
if [ ${#files[@]} -eq 0 ]; then
    cd "$here"
    if [ -e .git ]; then
        mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.hpp' '*.cpp' '*.ipp' '*.inc' '*.cu' '*.cuh' |
            while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
    else
        mapfile -t files < <(find include examples tests tools bench -type f -regex '.*\.\(hpp\|cpp\|ipp\|inc\|cu\|cuh\)' | sort)
    fi
fi
[ ${#files[@]} -gt 0 ] || { echo "format: found no file" >&2; exit 2; }

each() { printf '%s\0' "${files[@]}" | xargs -0 "$tool" --style=file "$@"; }
if [ -z "$check" ]; then
    each -i
    exit
fi
said=$(each --dry-run --ferror-limit=1 2>&1) || { echo "$said" >&2; exit 2; }
differ=$(sed -n 's/^\(.*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' <<<"$said" | sort -u)
[ -n "$differ" ] || exit 0
echo "$differ"
exit 1
