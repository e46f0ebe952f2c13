#!/usr/bin/env bash
# A group lags: how far, why, and when it will have caught up.
#
#   lagging-group.sh GROUP [BELOW] [WITHIN]
#
# Name servers come from MQX_NAMESRV or the context. Ends with 0 when the group has
# fewer than BELOW messages (1000) to read within WITHIN (15m), with 8 when it has not,
# with 6 when something is wrong with its members. Changes nothing.
set -euo pipefail

group=${1:?usage: lagging-group.sh GROUP [BELOW] [WITHIN]}
below=${2:-1000}
within=${3:-15m}
say() { printf '\n== %s\n' "$*"; }

say "1. How far behind is $group, and will retention delete messages before they are read?"
mqx admin lag get -g "$group" --by topic --age

say "2. Which queues hold it up? Those with the oldest message first."
mqx admin lag get -g "$group" --sort age --limit 10

say "3. Who is there to read, and does everybody read the same?"
mqx admin lag get -g "$group" --by client
findings=0
mqx admin group status "$group" --show findings --exit-code || findings=$?
case $findings in
0 | 7) ;; # nothing wrong, or nobody online: the lag says so
6)
	say "Something is wrong with its members: mend that first, more consumers would not help."
	mqx admin group status "$group" --show subscriptions
	exit 6
	;;
*) exit "$findings" ;;
esac

say "4. It is given $within to come below $below messages."
mqx wait lag -g "$group" --below "$below" --within "$within"
say "$group has caught up."
