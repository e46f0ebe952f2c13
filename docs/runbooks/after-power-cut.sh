#!/usr/bin/env bash
# A broker does not start after a power cut: what is broken, and how it is mended.
#
#   after-power-cut.sh STORE         looks and shows the plan
#   DO=yes after-power-cut.sh STORE
#
# STORE is the store directory of the broker, which must be stopped. What only follows
# from the rest is built again. Where something would be lost it stops with 6 and shows
# what; LOSE=yes goes on, and what cannot be read is kept in mqx/salvage of the store.
# TARGET (mqx) is who is to open it: apache-5.5, apache-5.3, apache-4.9 or mqx.
set -euo pipefail

store=${1:?usage: after-power-cut.sh STORE}
say() { printf '\n== %s\n' "$*"; }

say "1. What is there, and how was it left?"
mqx store info "$store"

say "2. What does not agree?"
found=0
mqx store verify "$store" || found=$?
case $found in
0)
	say "Nothing is wrong with the store: the reason is another one."
	mqx store preflight "$store" --target "${TARGET:-mqx}"
	exit 0
	;;
6) ;;
*) exit "$found" ;;
esac

say "3. How it would be mended."
mqx store repair "$store" --dry-run
if [ "${DO:-no}" != yes ]; then
	say "Nothing was done. DO=yes does it."
	exit 0
fi

say "4. It is mended. After an interruption the same command goes on."
if [ "${LOSE:-no}" = yes ]; then
	mqx store repair "$store" --confirm "$(basename "$store")"
elif ! mqx store repair "$store" --yes; then
	say "Something would be lost: look at the plan above. LOSE=yes goes on."
	exit 6
fi

say "5. Does it agree now, and who can open it?"
mqx store verify "$store"
mqx store preflight "$store" --target "${TARGET:-mqx}"
say "The broker can be started."
