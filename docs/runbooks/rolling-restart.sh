#!/usr/bin/env bash
# A rolling restart: every broker of a cluster once, replicas first, nobody waits for long.
#
#   rolling-restart.sh CLUSTER 'COMMAND'         shows the order
#   DO=yes rolling-restart.sh CLUSTER 'ssh {host} systemctl restart mqx-broker'
#
# COMMAND restarts a broker; {host}, {broker}, {addr}, {port} and {id} are filled in.
# ACCEPT=yes restarts brokers without a replica too: what lies on them cannot be read
# meanwhile. The state is in STATE (roll.json): after an interruption the same command
# goes on. Ends with 6 where something is wrong before it begins, with 8 where a broker
# did not come back in time.
set -euo pipefail

usage='usage: rolling-restart.sh CLUSTER COMMAND'
cluster=${1:?$usage} command=${2:?$usage}
state=${STATE:-roll.json}
say() { printf '\n== %s\n' "$*"; }

say "1. Is everything well? A restart is no time to find out."
mqx admin cluster join-check -c "$cluster" --max-disk "${MAX:-85}" --match 'verdict!=ok'

say "2. The order."
if [ ! -e "$state" ]; then
	accept=
	[ "${ACCEPT:-no}" = yes ] && accept=--accept-unavailable
	mqx admin cluster roll plan -c "$cluster" $accept --route-interval "${ROUTES:-30s}" --settle "${SETTLE:-10s}" --gate-timeout "${GATE:-10m}" --plan-out "$state"
	verb=start
else
	mqx admin cluster roll status "$state"
	verb=resume
	if mqx admin cluster roll status "$state" --limit 1 -o template='{{.status}}' | grep -qx planned; then verb=start; fi
fi
if [ "${DO:-no}" != yes ]; then
	say "Nothing was done. DO=yes does it."
	exit 0
fi

say "3. One broker after the other. mqx admin cluster roll status $state --watch says how far it is."
mqx admin cluster roll "$verb" "$state" --restart-cmd "$command" --yes

say "4. Is everything well again?"
mqx admin cluster join-check -c "$cluster" --max-disk "${MAX:-85}" --match 'verdict!=ok'
mqx admin broker ls -c "$cluster"
