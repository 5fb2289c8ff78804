#!/bin/sh
# stamps.sh - the pictures of Debian's package tuxpaint-stamps-default as a data set.
#
#   examples/datasets/stamps.sh OUT_DIR [--config FILE] [--only FOLDER,...] [--minimum PIXELS] [--source DIR]
#
# Fills OUT_DIR with links to the pictures under flat names and a .txt with the English caption beside each, and
# writes the dataset list FILE (OUT_DIR.json without --config). Pictures without caption, with a shorter edge below
# PIXELS (64), or broken are left out, and their names are in OUT_DIR-skipped.txt; of broken ones the first are shown as
# well. With --only it takes those of some folders of the package: food,animals/fish. Running it again makes the folder
# anew; the caches stay.
set -eu

usage() {
    echo "usage: $0 OUT_DIR [--config FILE] [--only FOLDER,...] [--minimum PIXELS] [--source DIR]" >&2
    exit 2
}

out=
config=
only=
minimum=64
source=/usr/share/tuxpaint/stamps
while [ $# -gt 0 ]; do
    case $1 in
        --config) [ $# -ge 2 ] || usage; config=$2; shift 2 ;;
        --only) [ $# -ge 2 ] || usage; only=$2; shift 2 ;;
        --minimum) [ $# -ge 2 ] || usage; minimum=$2; shift 2 ;;
        --source) [ $# -ge 2 ] || usage; source=$2; shift 2 ;;
        -*) usage ;;
        *) [ -z "$out" ] || usage; out=$1; shift ;;
    esac
done
[ -n "$out" ] || usage
case $minimum in '' | *[!0-9]*) usage ;; esac

if [ ! -d "$source" ]; then
    echo "$0: '$source' is missing. Fix: apt-get install tuxpaint-stamps-default" >&2
    exit 2
fi
# Only a folder that this script made, or an empty one, is replaced.
if [ -d "$out" ] && [ ! -e "$out/.stamps" ] && [ -n "$(ls -A "$out")" ]; then
    echo "$0: '$out' holds other files. Fix: name an empty or new folder" >&2
    exit 2
fi
source=$(cd "$source" && pwd)
if [ -n "$only" ]; then
    separator=$IFS
    IFS=,
    for folder in $only; do
        [ -d "$source/$folder" ] || {
            echo "$0: --only '$folder': there is no such folder in '$source'. Fix: name folders that are there, as food or animals/fish" >&2
            exit 2
        }
        set -- "$@" "$source/$folder"
    done
    IFS=$separator
else
    set -- "$source"
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -n "$config" ] || config=$out.json
mkdir -p "$(dirname "$config")"

work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/set"
: > "$work/set/.stamps"

# Sets width and height from a PNG's header; fails if the file is no PNG or does not end as one.
png_size() {
    case $(tail -c 8 "$1" | od -An -v -tu1) in
        *' 73  69  78  68 174  66  96 130'*) ;; # "IEND" and its check sum
        *) return 1 ;;
    esac
    set -- $(od -An -v -tu1 -N24 "$1") # signature, length, "IHDR", width, height
    [ $# -eq 24 ] && [ "$1 $2 $3 $4 $5 $6 $7 $8" = '137 80 78 71 13 10 26 10' ] || return 1
    shift 16
    width=$((($1 * 256 + $2) * 65536 + $3 * 256 + $4))
    height=$((($5 * 256 + $6) * 65536 + $7 * 256 + $8))
}

carriage_return=$(printf '\r')

# Sets caption to the first line with text; the other lines of the real files are translations ("de.utf8=...").
read_caption() {
    caption=
    [ -f "$1" ] || return 0
    while IFS= read -r line || [ -n "$line" ]; do
        line=${line%"$carriage_return"}
        case $line in *[![:space:]]*) break ;; *) line= ;; esac
    done < "$1"
    case ${line:-} in [a-z][a-z]*.utf8=*) ;; *) caption=${line:-} ;; esac
}

find "$@" -name '*.png' | LC_ALL=C sort > "$work/list"
found=0 used=0 uncaptioned=0 small=0 broken=0
: > "$work/skipped"
while IFS= read -r picture; do
    found=$((found + 1))
    name=${picture#"$source"/}
    line=
    if ! png_size "$picture"; then
        broken=$((broken + 1))
        echo "broken: $name" >> "$work/skipped"
        continue
    fi
    read_caption "${picture%.png}.txt"
    if [ -z "$caption" ]; then
        uncaptioned=$((uncaptioned + 1))
        echo "no caption: $name" >> "$work/skipped"
        continue
    fi
    if [ "$width" -lt "$minimum" ] || [ "$height" -lt "$minimum" ]; then
        small=$((small + 1))
        echo "below $minimum pixels: $name ($width x $height)" >> "$work/skipped"
        continue
    fi
    flat=$(printf '%s' "${name%.png}" | tr / -)
    while [ -e "$work/set/$flat.png" ]; do flat=$flat-again; done
    ln -s "$picture" "$work/set/$flat.png"
    printf '%s\n' "$caption" > "$work/set/$flat.txt"
    used=$((used + 1))
done < "$work/list"

names=$out-skipped.txt
skipped=$((found - used))
where=
if [ "$skipped" -gt 0 ]; then
    LC_ALL=C sort "$work/skipped" > "$work/names" && cp "$work/names" "$names.$$" && mv "$names.$$" "$names"
    where="; the names of the $skipped left out are in $names"
    sed -n '/^broken: /p' "$names" | head -n 5
    [ "$broken" -le 5 ] || echo "and $((broken - 5)) more broken ones"
else
    rm -f "$names"
fi
echo "$found pictures: $used used, $uncaptioned without caption, $small below $minimum pixels, $broken broken$where"
if [ "$used" -eq 0 ]; then
    echo "$0: nothing in '$source' can be used. Fix: reinstall tuxpaint-stamps-default" >&2
    exit 2
fi

rm -rf "$out"
mv "$work/set" "$out"

quoted=$(printf '%s' "$out" | sed 's/[\\"]/\\&/g')
cat > "$work/config" <<END
[
    {
        "id": "stamps",
        "type": "local",
        "dataset_type": "image",
        "instance_data_dir": "$quoted",
        "caption_strategy": "textfile",
        "metadata_backend": "discovery",
        "resolution": 128,
        "resolution_type": "pixel_area",
        "minimum_image_size": $minimum,
        "minimum_aspect_ratio": 0.6,
        "maximum_aspect_ratio": 1.67,
        "crop": false,
        "repeats": 1,
        "cache_dir_vae": "$quoted-cache/latents",
        "text_embeds": "captions"
    },
    {
        "id": "captions",
        "type": "local",
        "dataset_type": "text_embeds",
        "default": true,
        "cache_dir": "$quoted-cache/captions"
    }
]
END
cp "$work/config" "$config.$$" && mv "$config.$$" "$config"
echo "data set: $out"
echo "dataset list: $config"
