#!/usr/bin/env bash
# A poison message: one message that no consumer of a group can handle holds a queue up.
#
#   poison-message.sh GROUP TOPIC BROKER QUEUE      shows it and what would be done
#   DO=yes poison-message.sh GROUP TOPIC BROKER QUEUE
#
# The message is written to a file, goes to the dead letters of the group, and the group
# goes on behind it. mqx admin undo takes the offset back. Ends with 6 where the group
# has read everything in that queue.
set -euo pipefail

usage='usage: poison-message.sh GROUP TOPIC BROKER QUEUE'
group=${1:?$usage} topic=${2:?$usage} broker=${3:?$usage} queue=${4:?$usage}
keep=${KEEP:-poison-$group-$broker-$queue.json}
say() { printf '\n== %s\n' "$*"; }

say "1. Where does $group stand in queue $queue of $topic on $broker?"
mqx admin lag get -g "$group" -t "$topic" -b "$broker" -q "$queue" --by queue
offset=$(mqx admin offset get -g "$group" -t "$topic" -b "$broker" -q "$queue" -o template='{{.offset}}')
lag=$(mqx admin lag get -g "$group" -t "$topic" -b "$broker" -q "$queue" --by queue -o template='{{.lag}}')
if [ "$lag" = 0 ]; then
	say "The group has read everything there: nothing is in its way."
	exit 6
fi

say "2. The message at offset $offset, kept in $keep."
mqx admin message get "$broker:$queue:$offset" -t "$topic" -o json -O "$keep"
mqx admin message get "$broker:$queue:$offset" -t "$topic" --redact

say "3. What would be done: the message goes to the dead letters, the group goes on behind it."
mqx admin offset reset -g "$group" -t "$topic" -b "$broker" -q "$queue" --shift +1 --to-dlq --dry-run
if [ "${DO:-no}" != yes ]; then
	say "Nothing was done. DO=yes does it."
	exit 0
fi

say "4. It is done."
mqx admin offset reset -g "$group" -t "$topic" -b "$broker" -q "$queue" --shift +1 --to-dlq --yes
say "5. Where it stands now, and its dead letters."
mqx admin lag get -g "$group" -t "$topic" -b "$broker" -q "$queue" --by queue
mqx admin dlq get "$group" --redact --limit 5
