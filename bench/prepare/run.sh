#!/bin/bash
# bench/prepare/run.sh [--pictures N] [--size PIXELS] [--rounds N] - once with one rank, once with two that share the cores.
set -euo pipefail

program="${BENCH_BINARIES:?run this through bench/run.sh}/strata_bench_prepare"
cores=$(nproc)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for ranks in 1 2; do
    export OMP_NUM_THREADS=$((cores / ranks > 0 ? cores / ranks : 1))
    mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n "$ranks" "$program" "$@"
done
