#!/bin/bash
# bench/flux_shape/run.sh [full|lora] [--swap FOLDER] [...] - called by bench/run.sh flux_shape; by hand, because it takes long.
#
# Its files go below $TMPDIR, else beside the executable, and are removed at the end, however it ends.
set -euo pipefail
program=strata_bench_flux_shape
case "${1:-}" in
    full) shift ;;
    lora) shift && program=strata_bench_flux_shape_lora ;;
esac
# As strata::run does: libtorch 1.13 and OpenBLAS do not find out by themselves.
if grep -qw avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX; fi
swap="$(mktemp -d "${TMPDIR:-$BENCH_BINARIES}/flux_shape.XXXXXX")"
trap 'rm -rf "$swap"' EXIT
"$BENCH_BINARIES/$program" --swap "$swap" "$@" &
child=$!
trap 'kill "$child" 2>/dev/null; wait "$child"; exit 130' INT TERM
wait "$child"
