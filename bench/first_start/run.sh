#!/bin/bash
# bench/first_start/run.sh [--entries N] [--grant MIB] [--rounds N] [--threads N] - called by bench/run.sh first_start.
#
# Needs 1.1 GB below $TMPDIR (/tmp) for 100,000 entries, and five minutes.
set -euo pipefail
export OMP_NUM_THREADS=1
exec "$BENCH_BINARIES/strata_bench_first_start" "$@"
