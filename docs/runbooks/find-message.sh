#!/usr/bin/env bash
# Find a message and who consumed it.
#
#   find-message.sh TOPIC KEY [SINCE]        as in: find-message.sh ORDERS order-4711 -1d
#
# Shows every message with the key, and of each what became of it in every group. The
# bodies are hidden; SHOW=yes shows them. Ends with 7 where there is none. Changes nothing.
set -euo pipefail

usage='usage: find-message.sh TOPIC KEY [SINCE]'
topic=${1:?$usage} key=${2:?$usage} since=${3:-}
say() { printf '\n== %s\n' "$*"; }
redact=--redact
[ "${SHOW:-no}" = yes ] && redact=

say "1. Which messages of $topic have the key $key? All brokers are asked."
places=$(mqx admin message find "$topic" --key "$key" ${since:+--start "@$since"} -o template='{{.broker}}:{{.queueId}}:{{.queueOffset}}')

for place in $places; do
	say "2. The message at $place."
	mqx admin message get "$place" -t "$topic" $redact
	say "3. Who has consumed it?"
	mqx admin message track "$place" -t "$topic"
done
