#!/bin/bash
# bench/chaos/run.sh [--minutes N] [--seed N] [--kinds kill,link] [--own-folders] [--keep] - called by bench/run.sh chaos.
#
# Needs root (network namespaces, a mount), ip, tc, python3, Open MPI and the S3 server of ../shared/rgw_up.sh (Debian's radosgw,
# ceph-mon, ceph-osd; $STRATA_S3_SERVER names another script). STRATA_TOOLS names a folder with strata and strata-train of another
# build. Its files go below $TMPDIR, else /tmp, and are removed at the end; --keep leaves them.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
tools="${STRATA_TOOLS:-${BENCH_BINARIES:?run this through bench/run.sh}/../../tools}"
server="${STRATA_S3_SERVER:-$here/../../../shared/rgw_up.sh}"
missing() { echo "chaos cannot run here: $1" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || missing "it makes network namespaces and a mount, so that it needs root"
for program in ip tc python3 mpirun radosgw ceph-mon ceph-osd; do
    command -v "$program" >/dev/null || missing "$program is not installed (apt-get install iproute2 openmpi-bin radosgw ceph-mon ceph-osd)"
done
[ -f "$server" ] || missing "there is no $server: the reference material, or STRATA_S3_SERVER"
for program in strata strata-train; do [ -x "$tools/$program" ] || missing "there is no $tools/$program"; done
work="$(mktemp -d "${TMPDIR:-/tmp}/strata_chaos.XXXXXX")"
case " $* " in *" --keep "*) echo "files are in $work" >&2 ;; *) trap 'rm -rf --one-file-system "$work"' EXIT ;; esac
PYTHONDONTWRITEBYTECODE=1 python3 "$here/chaos.py" --tools "$tools" --server "$server" --work "$work" "$@"
