#!/bin/sh
# cmake/syntax-only.sh <compiler> <argument>... - the compiler as far as syntax goes; where an object would be, an empty file.
set -eu

"$@" -fsyntax-only
while [ $# -gt 0 ]; do
    if [ "$1" = -o ]; then : >"$2"; fi
    shift
done
