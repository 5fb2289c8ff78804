#!/bin/bash
# bench/step_time/run.sh [--steps N] [--rounds N] [--cases A,B] [--nvme-path FOLDER] [--nvme-mib N] - called by bench/run.sh step_time.
#
# The peers are DDP and ZeroRedundancyOptimizer of Debian's python3-torch; without that package they are left out.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    export BENCH_PEER_PYTHON=/usr/bin/python3 BENCH_PEER_SCRIPT="$here/peer.py"
else
    echo "python3-torch is not installed: no peers (apt-get install python3-torch)" >&2
fi
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
# As strata::run does, and for the peers as well: libtorch 1.13 and OpenBLAS do not find out by themselves.
if grep -qw avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX; fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
swap="$(mktemp -d "${TMPDIR:-$BENCH_BINARIES}/step_time.XXXXXX")"
trap 'rm -rf "$swap"' EXIT
job=(mpirun -n 2 --oversubscribe --bind-to none "$BENCH_BINARIES/strata_bench_step_time" --nvme-path "$swap")

# Peak memory first: a job a case.
keys=bare,stage0,stage1,stage2,stage2nvme,stage3,stage3nvme,alone,ddp,zero
arguments=("$@")
for ((i = 0; i + 1 < $#; ++i)); do [ "${arguments[i]}" != --cases ] || keys=${arguments[i + 1]}; done
peaks=""
for key in ${keys//,/ }; do peaks+="$("${job[@]}" --peak-of "$key") "; done
"${job[@]}" --peaks "$peaks" "$@"
