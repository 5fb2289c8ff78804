#!/bin/bash
# tests/consume/setup_of_json.sh CMAKE GENERATOR COMPILER PREFIX SOURCE FOLDER - a program whose configuration becomes a type: it follows the
# file, and a wrong file fails its build with a compiler's kind of line.
set -euo pipefail
cmake=$1 generator=$2 compiler=$3 prefix=$4 source=$5 work=$6
rm -rf "$work"
mkdir -p "$work"
cp -r "$source" "$work/project"
cd "$work"
json=$work/project/ds_config.json
fail() { echo "wrong: $*"; [ ! -f log ] || cat log; exit 1; }
build() { "$cmake" --build build >log 2>&1; }
expect_says() { grep -qF -e "$1" log || fail "it does not say '$1'"; }

"$cmake" -S project -B build -G "$generator" "-DCMAKE_CXX_COMPILER=$compiler" "-DCMAKE_PREFIX_PATH=$prefix" >log 2>&1 || fail configure
build || fail 'the first build'
said=$(build/consumer)
[ "$said" = "stage 2, clips at 0.5, betas 0.9 and 0.95, decays by 0.1, rate 0.000778151 at step 6 and 0.000444444 at step 61" ] ||
    fail "it says: $said"

# Nothing has changed: nothing is compiled. A change that is none in C++, neither.
stamp=$(stat -c %Y%Z build/consumer)
build && [ "$(stat -c %Y%Z build/consumer)" = "$stamp" ] || fail 'a build without a change built something'
header=$(find build -name ds_config.hpp)
made=$(stat -c %y "$header")
printf '\n' >>"$json"
build || fail 'the build after an empty line'
[ "$(stat -c %y "$header")" = "$made" ] || fail 'an empty line changed the header'

# It follows the file.
sed -i 's/"stage": 2/"stage": 3/; s/0.5,/0.25,/' "$json"
build || fail 'the build after a change'
build/consumer | grep -q '^stage 3, clips at 0.25, ' || fail "it does not follow: $(build/consumer)"

# What is wrong fails the build where it stands, all of it at once, and leaves the header as it was.
sed -i 's/"stage": 3/"stage": 7/; s/"AdamW"/"AdamV"/' "$json"
! build || fail 'a wrong file is built'
expect_says "$json:15:18: error: [ST2103] /zero_optimization/stage is 7"
expect_says "$json:7:17: error: [ST2104] /optimizer/type is \"AdamV\""
sed -i 's/"stage": 7,/"stage": 1/; s/"AdamV"/"AdamW"/' "$json"
! build || fail 'what is no JSON is built'
grep -qE "^$json:16:[0-9]+: error: \[ST2101\] " log || fail 'no line with the place where JSON ends'

# And goes on once it is right.
sed -i 's/"stage": 1/"stage": 1,/' "$json"
build || fail 'the build after the mistakes'
build/consumer | grep -q '^stage 1, ' || fail "it does not follow: $(build/consumer)"
echo "the setup follows its file"
