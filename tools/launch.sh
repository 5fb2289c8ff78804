#!/usr/bin/env bash
# tools/launch.sh RANKS PROGRAM [ARG ...] - runs a trainer on this machine so that Ctrl-C saves.
#
# The first Ctrl-C, SIGTERM or SIGHUP lets every rank finish its step and write a checkpoint; the exit status is then 0.
# A second one ends the job at once. (mpirun alone answers both by killing its ranks; SIGUSR1 it passes on, and a
# strata trainer takes that as "finish and save".)
set -u
if [ $# -lt 2 ] || ! [[ $1 =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: tools/launch.sh RANKS PROGRAM [ARG ...]" >&2
    exit 2
fi
ranks=$1
shift

cores=$(nproc)
threads=$((cores / ranks > 0 ? cores / ranks : 1))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$threads}
# libtorch 1.13 picks its kernels, and OpenBLAS its own, when they are loaded: say what this processor has.
if grep -qw avx512f /proc/cpuinfo; then
    export ATEN_CPU_CAPABILITY=${ATEN_CPU_CAPABILITY:-avx512} OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}
fi
options=(--quiet -n "$ranks" --oversubscribe --bind-to none)
[ "$ranks" -le "$cores" ] || options+=(--mca mpi_yield_when_idle 1)
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [ -z "${STRATA_PROGRESS:-}" ]; then
    [ -t 1 ] && export STRATA_PROGRESS=live || export STRATA_PROGRESS=plain
fi

# A session of its own: the terminal's Ctrl-C reaches this script only.
setsid mpirun "${options[@]}" "$@" </dev/null &
job=$!
asked=0
ask_to_stop() {
    asked=$((asked + 1))
    if [ "$asked" -eq 1 ]; then
        echo "stopping after this step (again to stop at once)" >&2
        kill -USR1 "$job" 2>/dev/null
    else
        kill -TERM "$job" 2>/dev/null
    fi
}
trap ask_to_stop INT TERM HUP
while :; do
    wait "$job"
    status=$?
    kill -0 "$job" 2>/dev/null || break  # wait also returns when a trap ran
done
if [ "$asked" -gt 0 ] && [ "$status" -gt 128 ]; then  # that was the trap: what did the job itself say?
    wait "$job"
    status=$?
fi
# Asked before the ranks were far enough to listen: SIGUSR1 ended them, and nothing was lost.
[ "$asked" -ne 1 ] || [ "$status" -ne $((128 + 10)) ] || status=0
exit "$status"
