#!/usr/bin/env bash
# A new topic is rolled out: made, seen by every name server, tried, with its group.
#
#   new-topic.sh TOPIC GROUP CLUSTER [QUEUES]         shows what would be made
#   DO=yes new-topic.sh TOPIC GROUP CLUSTER [QUEUES]
#
# QUEUES on each broker (8). One message is sent and read beside the group, which gets it
# as its first. Ends with 8 where the topic is not seen within a minute.
set -euo pipefail

usage='usage: new-topic.sh TOPIC GROUP CLUSTER [QUEUES]'
topic=${1:?$usage} group=${2:?$usage} cluster=${3:?$usage} queues=${4:-8}
say() { printf '\n== %s\n' "$*"; }

say "1. What would be made in $cluster."
mqx admin group create "$group" -c "$cluster" --dry-run
mqx admin topic create "$topic" -c "$cluster" --queues "$queues" --dry-run
if [ "${DO:-no}" != yes ]; then
	say "Nothing was done. DO=yes does it."
	exit 0
fi

say "2. The group first, then the topic: nobody reads a queue that its group does not know."
mqx admin group create "$group" -c "$cluster" --yes
mqx admin topic create "$topic" -c "$cluster" --queues "$queues" --yes

say "3. Do all name servers lead clients there?"
mqx wait topic "$topic" --within 1m
mqx admin topic get "$topic" --show config

say "4. A message goes in, and comes out again."
printf 'rolled out by new-topic.sh\n' | mqx produce "$topic" --key rollout
mqx consume "$topic" --count 1 --start start --timeout 30s -o json >/dev/null
say "5. The topic is ready. Its queues and who reads it:"
mqx admin topic get "$topic"
