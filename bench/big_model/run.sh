#!/bin/bash
# bench/big_model/run.sh [--swap FOLDER] [...] - called by bench/run.sh big_model; by hand, because it takes long.
#
# Its files go below $TMPDIR, else beside the executable, and are removed at the end.
set -euo pipefail
# As strata::run does: libtorch 1.13 and OpenBLAS do not find out by themselves.
if grep -qw avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX; fi
swap="$(mktemp -d "${TMPDIR:-$BENCH_BINARIES}/big_model.XXXXXX")"
trap 'rm -rf "$swap"' EXIT
"$BENCH_BINARIES/strata_bench_big_model" --swap "$swap" "$@"
