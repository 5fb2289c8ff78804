#!/bin/bash
# tests/storage/s3_server.sh FOLDER PORT KEY SECRET - a real S3 server on loopback, for as long as standard input is open.
#
# One Ceph monitor, one OSD in memory, one RADOS gateway (Debian packages radosgw, ceph-mon, ceph-osd). PORT and PORT + 1 must be
# free. Prints "ready http://127.0.0.1:PORT" when it answers, about 4 s after the start, or one line that begins with "failed".
# When standard input ends, however its writer ended, the servers are stopped and FOLDER is removed: nothing is left behind.
# Exit status 77: the packages are not installed.
set -euo pipefail

folder=${1:?FOLDER} port=${2:?PORT} key=${3:?KEY} secret=${4:?SECRET}
for program in radosgw radosgw-admin ceph ceph-mon ceph-osd ceph-authtool monmaptool; do
    command -v "$program" >/dev/null || { echo "failed: $program is not installed (Debian: radosgw ceph-mon ceph-osd)"; exit 77; }
done

mkdir -p "$folder"/{mon,osd,run,log,rgw}
children=()
clean_up() { # nothing in the folder is worth an orderly end, which takes the gateway five seconds
    trap - EXIT
    exec 2>/dev/null # the shell reports every server that is killed
    if [ ${#children[@]} -gt 0 ]; then kill -9 "${children[@]}" 2>/dev/null || true; fi
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
fail() { echo "failed: $1"; tail -n 5 "$folder"/log/* >&2 2>/dev/null || true; exit 1; }

# Debian 13's OSD looks for its classes below the folder that it is started in.
classes=$(find /usr/lib -maxdepth 2 -name rados-classes -print -quit)
fsid=$(cat /proc/sys/kernel/random/uuid)
cat >"$folder/ceph.conf" <<CONF
[global]
fsid = $fsid
mon host = v2:127.0.0.1:$((port + 1))
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = $folder/keyring
mon warn on insecure global id reclaim allowed = false
auth allow insecure global id reclaim = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 2000
mon data avail warn = 1
mon data avail crit = 1
paxos propose interval = 0.05
paxos min wait = 0.01
run dir = $folder/run
log file = $folder/log/\$name.log
admin socket = $folder/run/\$name.asok
pid file = $folder/run/\$name.pid
mon data = $folder/mon
osd data = $folder/osd
osd class dir = $classes
osd objectstore = memstore
memstore device bytes = 4294967296
osd memory target = 939524096
ms bind ipv6 = false
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:$port
rgw thread pool size = 64
rgw data = $folder/rgw
rgw gc max objs = 1
rgw lc max objs = 1
rgw objexp hints num shards = 1
rgw usage max shards = 1
rgw enable ops log = false
rgw enable usage log = false
rgw dns name = localhost
CONF

conf=(-c "$folder/ceph.conf")
exec 3<&0 </dev/null # the servers must not hold the pipe whose end stops them
quietly() { "$@" >>"$folder/log/setup" 2>&1 3<&-; }
quietly ceph-authtool --create-keyring "$folder/keyring" --gen-key -n mon. --cap mon 'allow *' || fail "no keyring"
quietly ceph-authtool "$folder/keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
quietly ceph-authtool "$folder/keyring" --gen-key -n osd.0 --cap mon 'allow profile osd' --cap osd 'allow *'
quietly ceph-authtool "$folder/keyring" --gen-key -n client.rgw --cap mon 'allow rw' --cap osd 'allow rwx'
quietly monmaptool --create --addv a "[v2:127.0.0.1:$((port + 1))]" --fsid "$fsid" "$folder/monmap" || fail "no monitor map"
quietly ceph-mon "${conf[@]}" --mkfs -i a --monmap "$folder/monmap" --keyring "$folder/keyring" || fail "the monitor cannot be set up"
ceph-mon "${conf[@]}" -i a -f >"$folder/log/mon.out" 2>&1 3<&- &
children+=($!)
disk=$(cat /proc/sys/kernel/random/uuid)
quietly ceph "${conf[@]}" --connect-timeout 30 osd create "$disk" 0 || fail "the monitor does not answer"
quietly ceph-osd "${conf[@]}" -i 0 --mkfs --osd-uuid "$disk" || fail "the OSD cannot be set up"
ceph-osd "${conf[@]}" -i 0 -f >"$folder/log/osd.out" 2>&1 3<&- &
children+=($!)
for _ in $(seq 300); do
    ceph "${conf[@]}" osd stat 2>/dev/null 3<&- | grep -q '1 up' && break
    sleep 0.1
done
quietly radosgw-admin "${conf[@]}" -n client.rgw user create --uid=test --display-name=test \
    --access-key="$key" --secret-key="$secret" || fail "no user"
radosgw "${conf[@]}" -n client.rgw -f >"$folder/log/rgw.out" 2>&1 3<&- &
children+=($!)
answers=0
for _ in $(seq 600); do
    if (exec 4<>"/dev/tcp/127.0.0.1/$port" && printf 'GET / HTTP/1.0\r\n\r\n' >&4 && read -r -t 5 line <&4) 2>/dev/null; then
        answers=1
        break
    fi
    kill -0 "${children[2]}" 2>/dev/null || fail "the gateway has ended"
    sleep 0.1
done
[ "$answers" = 1 ] || fail "the gateway does not answer"
echo "ready http://127.0.0.1:$port"
cat <&3 >/dev/null # until our caller closes its end or is gone
