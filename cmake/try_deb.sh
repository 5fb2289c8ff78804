#!/bin/bash
# cmake/try_deb.sh [--keep FOLDER] [--mirror URI] [FILE.deb] - installs the package on a bare Debian, builds against it and trains.
#
#   FILE.deb         made by cpack on the Debian release that this machine has; default: one is made, with the preset `package`
#   --keep, --mirror  as of cmake/try_on_debian.sh
#
# In a clean chroot of this machine's release, which sees no header of this tree: apt installs the package with what it depends on and
# recommends, `strata train` trains from a DeepSpeed JSON, an example of the package is built by find_package and by pkg-config and trains
# through `strata launch`, all on 2 ranks, and nothing is left once the package is purged. By hand, outside of the everyday tests: packages of a gigabyte, and root.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The half that runs on the bare Debian.
if [ "${1:-}" = --inside ]; then
    package=$2
    export DEBIAN_FRONTEND=noninteractive
    work=$(mktemp -d)
    cp "$package" "$work/"
    cd "$work"
    said() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "try_deb: failed: $*" >&2; exit 1; }; }
    trained() {
        OMP_NUM_THREADS=1 strata launch -n 2 -- "$1" --output "$work/$2" --fresh | tee "$work/said"
        grep -q 'loss 0.* after 600 steps' "$work/said"
    }
    echo "== apt-get install ./$(basename "$package")"
    said apt-get update
    said apt-get install -y "./$(basename "$package")"
    strata --version

    echo "== strata train: a DeepSpeed JSON and a folder of pictures"
    said apt-get install -y imagemagick
    mkdir pictures
    for name in a b c d e f g h; do
        convert -size 64x64 "xc:rgb($((RANDOM % 256)),100,50)" "pictures/$name.png"
        echo "a picture called $name" >"pictures/$name.txt"
    done
    cat >list.json <<LIST
[{"id": "pictures", "type": "local", "resolution": 64, "instance_data_dir": "$work/pictures", "cache_dir_vae": "$work/vae"},
 {"id": "captions", "type": "local", "dataset_type": "text_embeds", "cache_dir": "$work/captions"}]
LIST
    echo '{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}' >ds.json
    OMP_NUM_THREADS=1 strata train ds.json list.json -n 2 --max_train_steps 20 --learning_rate 1e-3 \
        --aspect_bucket_alignment 16 --output "$work/trained" | tee "$work/said"
    grep -q 'Trainer<SmallFlux, ZeroStage<3>, Precision<Bf16>>' "$work/said"
    test -s "$work/trained/report.html"

    echo "== find_package: example 01"
    said cmake -S /usr/share/doc/strata/examples -B examples -DCMAKE_BUILD_TYPE=Release
    if grep -q /strata/tree examples/CMakeCache.txt; then echo "try_deb: CMake found the source tree" >&2; exit 1; fi
    said cmake --build examples --target 01_train_your_model
    trained examples/01_train_your_model by_find_package

    echo "== pkg-config: example 01"
    said apt-get install -y pkgconf
    # shellcheck disable=SC2046  # flags are words
    said g++ -O2 -o trainer /usr/share/doc/strata/examples/01_train_your_model.cpp $(pkgconf --cflags --libs strata)
    trained ./trainer by_pkg_config

    echo "== apt-get purge strata"
    mapfile -t files < <(dpkg -L strata)
    said apt-get purge -y strata
    for file in "${files[@]}"; do
        if [ ! -d "$file" ] && [ -e "$file" ]; then echo "try_deb: $file is still there" >&2; exit 1; fi
    done
    [ ! -e /usr/include/strata ] || { echo "try_deb: /usr/include/strata is still there" >&2; exit 1; }
    echo "== the package installs, builds, trains and goes"
    exit 0
fi

options=()
while [[ ${1:-} == --* ]]; do
    case $1 in
        --keep | --mirror) options+=("$1" "${2:?$1 wants a value}") && shift 2 ;;
        *) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
    esac
done
package=${1:-}
if [ -z "$package" ]; then
    cd "$here"
    "$here/cmake/install-debian-packages.sh" compile build package
    cmake --workflow --preset package
    package=$(echo "$here"/build/package/strata_*.deb)
fi
[ -f "$package" ] || { echo "try_deb: there is no package $package" >&2; exit 2; }
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
exec "$here/cmake/try_on_debian.sh" "${options[@]}" --with "$package" "$release" \
    cmake/try_deb.sh --inside "/strata/with/$(basename "$package")"
