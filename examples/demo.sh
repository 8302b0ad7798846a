#!/usr/bin/env bash
# Ingest the three collections of fixtures/ into a workspace of its own and ask a few questions by three techniques.
# usage: examples/demo.sh [FOLDER], a folder that is not there, or one that an earlier demo made: it is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
workspace=${1:-demo-workspace}
if [ -e "$workspace" ] && [ ! -f "$workspace/.demo" ]; then
  echo "error: '$workspace' exists and no demo made it; name a folder that is not there" >&2
  exit 2
fi
rm -rf "$workspace"
mkdir -p "$workspace"
touch "$workspace/.demo"
export RAGISTRY_WORKSPACE=$workspace

run() {
  printf '\n$ %s\n' "$*"
  "$@"
}

run ragistry init "$workspace"
run ragistry ingest fixtures/handbook --collection handbook --create "Operations handbook of the Lantern service"
run ragistry ingest fixtures/garden --collection garden --create "Gardening: soil, pests, pruning, watering"
run ragistry ingest fixtures/manuals --collection manuals --create "Manuals of appliances and instruments"
run ragistry techniques
run ragistry search "how do I restore yesterday's backup?" --top-k 3
run ragistry search "white powder on squash leaves" --top-k 3
run ragistry search "how often does the boiler need descaling?" --collection manuals --top-k 2
run ragistry search "LNT-1042" --technique bm25 --top-k 1
run ragistry search "keep plants alive through frost" --technique mmr --top-k 3
