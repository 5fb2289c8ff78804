#!/bin/bash
# bench/bf16_products/run.sh [--rounds N] - called by bench/run.sh bf16_products. One thread.
set -euo pipefail
export OMP_NUM_THREADS=1
# As strata::run does: libtorch 1.13 and OpenBLAS do not find out by themselves.
if grep -qw avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX; fi
exec "$BENCH_BINARIES/strata_bench_bf16_products" "$@"
