#!/bin/bash
# bench/attention/run.sh [--rounds N] [--tokens L] [--queries N --keys N] - called by bench/run.sh attention.
#
# One thread; --queries and --keys try tiles of another size.
set -euo pipefail
export OMP_NUM_THREADS=1
# As strata::run does: libtorch 1.13 and OpenBLAS do not find out by themselves.
if grep -qw avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX; fi
exec "$BENCH_BINARIES/strata_bench_attention" "$@"
