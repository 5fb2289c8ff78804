#!/bin/bash
# bench/memory/run.sh [--ranks "1 2 4"] [--cases "stage0 stage3both"] [--width D] [--layers N] - called by bench/run.sh memory.
#
# Behind them: how much a process holds at most while a model is made and taken over, at once, in units and from files.
#
# A process a case, so that none finds the memory of another. Files go below $TMPDIR, else beside the executable.
set -uo pipefail
ranks="1 2 4"
cases="stage0 stage1 stage2 stage2nvme stage3 stage3nvme stage3units stage3both"
shape=()
while [ $# -gt 1 ]; do
    case $1 in
        --ranks) ranks=$2 ;;
        --cases) cases=$2 ;;
        *) shape+=("$1" "$2") ;;
    esac
    shift 2
done
# glibc keeps freed blocks below 32 MiB for itself: resident memory is to be what is allocated.
export MALLOC_MMAP_THRESHOLD_=${MALLOC_MMAP_THRESHOLD_:-262144}
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
if grep -qw avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX; fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
swap="$(mktemp -d "${TMPDIR:-$BENCH_BINARIES}/memory.XXXXXX")"
trap 'rm -rf "$swap"' EXIT

echo "MB a rank; buffers are the larger of start and gradients + gathered units, and windows"
echo "| case | N | formula | is | buffers (start, gradients, gathered, windows) | metered peak | deviation | disk | metered | resident | at start |"
echo "|---|---|---|---|---|---|---|---|---|---|---|"
status=0
lines=""
for n in $ranks; do
    for case in $cases; do
        out="$(mpirun -n "$n" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
            "$BENCH_BINARIES/strata_bench_memory" --case "$case" --swap "$swap" "${shape[@]}")" || status=1
        grep -v '^{' <<<"$out"
        lines+="$(grep '^{' <<<"$out")"$'\n'
    done
    # Every case on the same ranks trains the same model.
    if [ "$(grep " $n ranks" <<<"$lines" | grep -o '"grad_norm":[^}]*' | sort -u | wc -l)" -ne 1 ]; then
        echo "the cases on $n ranks end with different gradients" >&2
        status=1
    fi
done
echo
echo "MB a rank while a model of 24 units is made and taken over by ZeroStage<3> in bf16: kept are the shards, gradients and state"
echo "| made | N | kept | a unit | resident at most | beyond what is kept, in units |"
echo "|---|---|---|---|---|---|"
for n in $ranks; do
    for case in at_once in_units from_files; do
        out="$(mpirun -n "$n" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
            "$BENCH_BINARIES/strata_bench_construction" --case "$case" --folder "$swap")" || status=1
        grep -v '^{' <<<"$out"
        lines+="$(grep '^{' <<<"$out")"$'\n'
    done
done
printf '%s' "$lines"
exit $status
