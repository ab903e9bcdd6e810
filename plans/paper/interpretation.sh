#!/usr/bin/env bash
# The rows of docs/results/interpretation.md: every sparse attack of the paper's tables, on every network at hand,
# explained with the same sampling. What is finished is not run again.
#   bash plans/paper/interpretation.sh [OUT=pinprick-out/interpretation] [IMAGES=64]
# From the root of the repository, with the photographs in nips2017/ and data as for ./scripts/paper.
set -euo pipefail
out=${1:-pinprick-out/interpretation} images=${2:-64}
attacks=(pinprick sigma_zero,steps=1000 wifgsm wifgsm_printed,keep=sparsest fmn,steps=1000 greedyfool sparsefool
  cw_l0,preset=quick sparse_rs,k=smallest,queries=200 brusle,k=smallest,queries=200 sa_moo,k=smallest,queries=200 homotopy ifgsm)

one() {  # NAME MODEL DATA MAP [OPTION...]
  local name=$1 model=$2 data=$3 map=$4; shift 4
  for goal in untargeted least_likely; do
    for grouping in connected pixels; do
      local folder="$out/$(tr -c 'a-z0-9\n' _ <<<"${name,,}")/$goal/$grouping" given=()
      [ -e "$folder/interpretation.json" ] && continue
      for attack in "${attacks[@]}"; do
        [ "$goal/$attack" = least_likely/sparsefool ] || given+=(--attack "$attack")
      done
      local sampling=(); [ "$grouping" = pixels ] && sampling=(--pairs 64)
      local target=(); [ "$goal" = least_likely ] && target=(--least-likely)
      python benchmarks/interpretation.py --model "$model" --data "$data" --images "$images" --map "$map" --grouping "$grouping" \
        "${sampling[@]}" "${target[@]}" "${given[@]}" --out "$folder.part" "$@" && mkdir -p "$(dirname "$folder")" && mv "$folder.part" "$folder"
      python benchmarks/interpretation_rows.py --network "$name" "$folder/interpretation.json"
    done
  done
}

one "Fashion-MNIST CNN" pinprick:fashion_cnn fashion_sample layercam
one "ResNet-18, 8-bit" file:models/cifar10_resnet18 cifar10/test layercam --skip 400
one "ResNet-18, PGD-AT, 8-bit" file:models/cifar10_resnet18_pgd_at cifar10/test layercam --skip 400
one "ResNet-20" pinprick:cifar10_resnet20 cifar10/test layercam --skip 400
one "ResNet-20, PGD-AT" pinprick:cifar10_resnet20_pgd_at cifar10/test layercam --skip 400
images=48 one EfficientNet-Lite0 efficientnet_lite0 nips2017 gradcam
images=48 one "ResNet-50, ImageNet" plans/paper/networks.py:imagenet_resnet50 nips2017 gradcam
./scripts/docs measured
