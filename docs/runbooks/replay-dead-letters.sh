#!/usr/bin/env bash
# Replay of dead letters: a group gets once more what it gave up on, and nobody else does.
#
#   replay-dead-letters.sh GROUP [RATE]         shows them and the plan
#   DO=yes replay-dead-letters.sh GROUP [RATE]
#
# They are written to a file first and go to the retry topic of the group, RATE a second
# (50). With PURGE=yes those that the group has read are destroyed afterwards. Ends with
# 7 where there are none, with 8 where the group has not read them within WITHIN (15m).
set -euo pipefail

group=${1:?usage: replay-dead-letters.sh GROUP [RATE]}
rate=${2:-50}
keep=${KEEP:-dead-$group.ndjson}
say() { printf '\n== %s\n' "$*"; }

say "1. What has $group given up on? All of it is kept in $keep."
mqx admin dlq get "$group" -o ndjson -O "$keep"
count=$(wc -l <"$keep")
if [ "$count" = 0 ]; then
	say "It has no dead letters."
	exit 7
fi
mqx admin dlq get "$group" --redact --limit 10

say "2. Is somebody there to read them?"
mqx admin lag get -g "$group" --by client

say "3. What would be done with $count dead letters."
mqx admin dlq replay "$group" --rate "$rate" --dry-run
if [ "${DO:-no}" != yes ]; then
	say "Nothing was done. DO=yes does it."
	exit 0
fi

say "4. They are given to the group once more; what has been replayed before is left out."
mqx admin dlq replay "$group" --rate "$rate" --yes --timeout "${TIMEOUT:-1h}"

say "5. Has it read them?"
mqx wait lag -g "$group" --within "${WITHIN:-15m}"
if [ "${PURGE:-no}" = yes ]; then
	say "6. The dead letters are destroyed; $keep has them."
	mqx admin dlq purge "$group" --confirm "$group"
fi
