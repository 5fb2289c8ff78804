#!/bin/bash
# bench/compile_cost/run.sh [--rounds N] [--cases stage,tier,rule,precision,average,all] - called by bench/run.sh compile_cost.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
exec python3 "$here/measure.py" "$BENCH_BINARIES/../../compile_commands.json" "$@"
