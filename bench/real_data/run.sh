#!/bin/bash
# bench/real_data/run.sh [--steps N] [--cases "sd15-full flux-lora"] [--data FOLDER] [--seed N] - called by bench/run.sh real_data.
#
# FOLDER has images/photos and weights/taesd; ../shared/data beside the repository. Without it, or without PyTorch (apt-get install
# python3-torch), there is nothing to compare, and it says so. Its files go below $TMPDIR, else beside the executable, and are removed at the end.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
steps=300
cases="sd15-full flux-full sd15-lora flux-lora"
data="$here/../../../shared/data"
seed=42
while [ $# -gt 1 ]; do
    case $1 in
        --steps) steps=$2 ;;
        --cases) cases=$2 ;;
        --data) data=$2 ;;
        --seed) seed=$2 ;;
        *) echo "there is no $1; the first lines of bench/real_data/run.sh say what there is" >&2; exit 2 ;;
    esac
    shift 2
done
if [ ! -d "$data/images/photos" ] || [ ! -d "$data/weights/taesd" ]; then
    echo "there are no photos and weights in $data: give --data FOLDER with images/photos and weights/taesd" >&2
    exit 2
fi
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "python3-torch is not installed: nothing to compare with (apt-get install python3-torch)" >&2
    exit 2
fi
data="$(cd "$data" && pwd)"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_WAIT_POLICY=passive
if grep -qw avx512f /proc/cpuinfo; then export ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX; fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work="$(mktemp -d "${TMPDIR:-$BENCH_BINARIES}/real_data.XXXXXX")"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

status=0
for case in $cases; do
    folder="$work/$case"
    mkdir "$folder"
    cat >"$folder/data.json" <<END
[{"id": "photos", "type": "local", "dataset_type": "image", "instance_data_dir": "$data/images/photos",
  "caption_strategy": "textfile", "resolution": 128, "resolution_type": "pixel_area", "crop": true, "crop_style": "center",
  "crop_aspect": "closest", "crop_aspect_buckets": [0.75, 1.0, 1.33],
  "cache_dir_vae": "$work/${case%-*}-latents", "text_embeds": "captions"},
 {"id": "captions", "type": "local", "dataset_type": "text_embeds", "default": true, "cache_dir": "$work/captions"}]
END
    lora=""
    rate=1e-3
    # Adapters move a model that knows nothing yet only a little.
    if [ "${case#*-}" = lora ]; then
        lora='"model_type": "lora", "lora_rank": 8, "lora_alpha": 8, "lora_dropout": 0,
 "peft_lora_target_modules": ["to_q", "to_k", "to_v", "to_out.0"],'
        rate=5e-3
    fi
    cat >"$folder/config.json" <<END
{"data_backend_config": "$folder/data.json", "seed": $seed, "mixed_precision": "no", $lora
 "resolution": 128, "resolution_type": "pixel_area", "aspect_bucket_alignment": 16, "caption_dropout_probability": 0.1,
 "max_train_steps": $steps, "train_batch_size": 4, "learning_rate": $rate, "lr_scheduler": "constant", "lr_warmup_steps": 0,
 "optimizer_weight_decay": 0.01, "max_grad_norm": 1.0}
END
    begin=$(date +%s)
    "$BENCH_BINARIES/strata_bench_real_data" --config "$folder/config.json" --case "$case" --taesd "$data/weights/taesd" \
        --output "$folder" >"$folder/ours.log" 2>&1 || { cat "$folder/ours.log" >&2; exit 1; }
    between=$(date +%s)
    /usr/bin/python3 "$here/peer.py" "$folder" "$case" || status=1
    echo "  $case: $((between - begin)) s ours with its caches, $(($(date +%s) - between)) s the peer" >&2
done
exit $status
