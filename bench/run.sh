#!/bin/bash
# bench/run.sh [NAME [arguments]] - builds (release preset) and runs one question; without a name lists them.
#
#   bench/run.sh update_kernels --threads 2
#
# The last lines are JSON, one a case. A folder bench/NAME has a CMakeLists.txt with a target strata_bench_NAME, and a run.sh
# where there is more to do than to run that: it finds the executables in $BENCH_BINARIES.
# BUILD_DIR overrides build/release.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$here/.."
if [[ $# -eq 0 ]]; then
    echo "usage: bench/run.sh NAME [arguments], where NAME is one of:"
    for folder in "$here"/*/CMakeLists.txt; do echo "  $(basename "$(dirname "$folder")")"; done
    exit 0
fi
name=$1
shift
if [[ ! -f "$here/$name/CMakeLists.txt" ]]; then
    echo "there is no bench '$name'; bench/run.sh without a name lists them" >&2
    exit 2
fi

build="${BUILD_DIR:-$root/build/release}"
log="$build/bench.log"
mkdir -p "$build"
{
    cmake --preset release -S "$root" -B "$build" -DSTRATA_BUILD_BENCH=ON &&
        cmake --build "$build" --target "strata_bench_$name"
} >"$log" 2>&1 || { cat "$log" >&2; exit 1; }

export BENCH_BINARIES="$build/bench/$name"
if [[ -x "$here/$name/run.sh" ]]; then exec "$here/$name/run.sh" "$@"; fi
exec "$BENCH_BINARIES/strata_bench_$name" "$@"
