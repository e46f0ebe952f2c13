#!/usr/bin/env bash
# A disk is nearly full: what fills it, and how to get room without losing what is unread.
#
#   disk-nearly-full.sh BROKER HOURS         shows what would go
#   DO=yes disk-nearly-full.sh BROKER HOURS
#
# Sets fileReservedTime of BROKER to HOURS and lets it delete files that are older. Groups
# that have not read them are listed before. MAX (75) is the percentage of the disk that is
# too much: with less in use it ends with 0 and does nothing.
set -euo pipefail

usage='usage: disk-nearly-full.sh BROKER HOURS'
broker=${1:?$usage} hours=${2:?$usage}
max=${MAX:-75}
say() { printf '\n== %s\n' "$*"; }

say "1. How long does $broker keep messages, and is its disk full?"
mqx admin config get fileReservedTime deleteWhen diskMaxUsedSpaceRatio -b "$broker"
full=0
mqx admin cluster join-check --max-disk "$max" --match "check=disk && broker=$broker" -o json >disk.json || full=$?
cat disk.json
case $full in 0 | 6) ;; *) exit "$full" ;; esac
if ! grep -q '"verdict": *"finding"' disk.json; then
	say "Less than $max % of the disk is in use: nothing has to be done."
	exit 0
fi

say "2. What lies there? The topics with the most messages."
mqx admin topic ls -o name | while read -r topic; do
	mqx admin topic get "$topic" -o template='{{.messages}} {{.topic}}'
done | awk '{ sum[$2] += $1 } END { for (t in sum) print sum[t], t }' | sort -rn | awk 'NR <= 10'

say "3. What would go: files of $broker older than $hours hours, and who has not read theirs."
mqx admin config set -b "$broker" "fileReservedTime=$hours" --dry-run
mqx admin broker purge "$broker" --expired --dry-run
mqx admin lag get --match 'lag>0' --age
if [ "${DO:-no}" != yes ]; then
	say "Nothing was done. DO=yes does it."
	exit 0
fi

say "4. It is kept for $hours hours from now on, and what is older goes."
mqx admin config set -b "$broker" "fileReservedTime=$hours" --yes
mqx admin broker purge "$broker" --expired --confirm "$broker"

say "5. How full is it now?"
mqx admin cluster join-check --max-disk 100 --match "check=disk && broker=$broker" || [ $? = 6 ]
