#!/usr/bin/env bash
# Redo since a time: a group reads a topic once more, from a moment on.
#
#   redo-since.sh GROUP TOPIC TIME         as in: redo-since.sh billing ORDERS -2h
#   DO=yes redo-since.sh GROUP TOPIC TIME
#
# TIME is as mqx help positions says. Where the group stood is kept in a file, which
# mqx admin offset import takes; mqx admin undo does the same. Ends with 8 where the group
# has not caught up within WITHIN (15m).
set -euo pipefail

usage='usage: redo-since.sh GROUP TOPIC TIME'
group=${1:?$usage} topic=${2:?$usage} since=${3:?$usage}
keep=${KEEP:-offsets-$group-$topic.json}
say() { printf '\n== %s\n' "$*"; }

say "1. Where $group stands in $topic is kept in $keep."
mqx admin offset export -g "$group" -t "$topic" -O "$keep"
mqx admin offset get -g "$group" -t "$topic"

say "2. What it would read once more."
mqx admin offset reset -g "$group" -t "$topic" --to "@$since" --dry-run
if [ "${DO:-no}" != yes ]; then
	say "Nothing was done. DO=yes does it."
	exit 0
fi

say "3. It goes on reading from there."
mqx admin offset reset -g "$group" -t "$topic" --to "@$since" --yes

say "4. It is given ${WITHIN:-15m} to catch up. Back to where it was: mqx admin offset import $keep"
mqx wait lag -g "$group" -t "$topic" --within "${WITHIN:-15m}"
