#!/bin/bash
# bench/models_step/run.sh [--rounds N] [--steps N] [--cases A,B] - called by bench/run.sh models_step.
#
# The peer is PyTorch eager of Debian's python3-torch; without that package it is left out. One thread each.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export OMP_NUM_THREADS=1
# As strata::run does, and for the peer as well: libtorch 1.13 and OpenBLAS do not find out by themselves.
if grep -qw avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX; fi
ours="$BENCH_BINARIES/strata_bench_models_step"
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "python3-torch is not installed: no peer (apt-get install python3-torch)" >&2
    exec "$ours" "$@"
fi
export BENCH_PEER_PYTHON=/usr/bin/python3 BENCH_PEER_SCRIPT="$here/peer.py"

# Peak memory first: a process a case and a side.
keys=flux-fp32,flux-bf16,sdxl-fp32,sdxl-bf16
arguments=("$@")
for ((i = 0; i + 1 < $#; ++i)); do [ "${arguments[i]}" != --cases ] || keys=${arguments[i + 1]}; done
peaks=""
for key in ${keys//,/ }; do
    peaks+="$key $("$ours" --peak-of "$key") $("$BENCH_PEER_PYTHON" "$BENCH_PEER_SCRIPT" --peak-of "$key") "
done
exec "$ours" --peaks "$peaks" "$@"
