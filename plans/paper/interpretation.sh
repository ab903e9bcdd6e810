#!/usr/bin/env bash
# The rows of docs/results/interpretation.md: sparse attacks of the paper's tables, explained with the same sampling
# on every network at hand. Left out: wifgsm_printed, which fools too few images; OnePixel, whose number of pixels is
# fixed; EGS-TSSA, which needs a trained generator per network and target; and ResNet-50, of which no store has images.
# Only I-FGSM runs here, since no store has its images. The others come from results/, which
# `./scripts/paper interpretation table1` completes. What is finished is not done again.
#   bash plans/paper/interpretation.sh [OUT=pinprick-out/interpretation] [IMAGES=100] [PHOTOGRAPHS=24] [DEVICE=cpu]
#   ONLY='ResNet-20.*/connected' bash plans/paper/interpretation.sh    # the parts NETWORK/GOAL/GROUPING that match
# From the root of the repository, with the photographs in nips2017/ and data as for ./scripts/paper.
set -euo pipefail
out=${1:-pinprick-out/interpretation} images=${2:-100} photographs=${3:-24} device=${4:-cpu}
stores=(--store results/leaderboard --store results/paper --store results/pinprick)
dense=ifgsm,eps=0.01568627450980392,step_size=0.00392156862745098,steps=10
attacks=(pinprick sigma_zero,steps=1000 wifgsm fmn,norm=l0,steps=1000 greedyfool sparsefool cw_l0,preset=quick,unit=elements homotopy
  sparse_rs,k=smallest,rounds=10,queries=200,unit=elements brusle,k=smallest,rounds=10,queries=200 sa_moo,k=smallest,rounds=10,queries=200,unit=elements)

one() {  # NAME MODEL DATA MAP [OPTION...]
  local name=$1 model=$2 data=$3 map=$4; shift 4
  for goal in untargeted least_likely; do
    for grouping in connected pixels; do
      local folder given=() options=() attack
      folder="$out/$(tr -c 'a-z0-9\n' _ <<<"${name,,}")/$goal/$grouping"
      [[ "$name/$goal/$grouping" =~ ${ONLY:-.} ]] || continue
      [ -e "$folder/interpretation.json" ] && continue
      for attack in "${attacks[@]}"; do given+=(--attack "$attack"); done
      [ "$grouping" = pixels ] && options+=(--pairs 64 --attack-here "$dense")
      [ "$goal" = least_likely ] && options+=(--least-likely)
      python benchmarks/interpretation.py --model "$model" --data "$data" --images "$images" --map "$map" --device "$device" \
        --grouping "$grouping" "${stores[@]}" "${given[@]}" "${options[@]}" --out "$folder.part" "$@"
      mkdir -p "$(dirname "$folder")" && mv "$folder.part" "$folder"
      python benchmarks/interpretation_rows.py --network "$name" "$folder/interpretation.json"
    done
  done
}

one "Fashion-MNIST CNN" pinprick:fashion_cnn "fashion_mnist/test[0:200]" layercam
one "ResNet-20" pinprick:cifar10_resnet20 "cifar10/test[0:200]" layercam
one "ResNet-20, PGD-AT" pinprick:cifar10_resnet20_pgd_at "cifar10/test[0:200]" layercam
one "ResNet-18" file:models/cifar10_resnet18 "cifar10/test[0:200]" layercam
one "ResNet-18, PGD-AT" file:models/cifar10_resnet18_pgd_at "cifar10/test[0:200]" layercam
attacks=("${attacks[@]/%wifgsm/wifgsm,preset=imagenet}")  # its preset for photographs
images=$photographs one EfficientNet-Lite0 efficientnet_lite0 csv:nips2017/images.csv gradcam
./scripts/docs measured interpretation
