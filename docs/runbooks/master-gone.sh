#!/usr/bin/env bash
# The master of a group is gone for good: one of its slaves becomes the master.
#
#   master-gone.sh BROKER            looks and shows the plan
#   DO=yes master-gone.sh BROKER
#
# BROKER is the name of the group. The old master must be stopped and must not be started
# by anything: what it takes elsewhere meanwhile is not in the group any more. What it had
# taken last and not sent to a slave is missing until it comes back: docs/replication.md
# says how much that can be by the level. ROLE is what the new master is (ASYNC_MASTER);
# SYNC_MASTER waits for slaves that there must be. WITHIN (60s) bounds the wait for it.
# When the old one comes back it takes no messages: mqx admin ha demote makes it a slave.
set -euo pipefail

broker=${1:?usage: master-gone.sh BROKER}
say() { printf '\n== %s\n' "$*"; }

say "1. How does the group stand? A broker that does not answer is not in the list."
mqx admin ha status "$broker" --partial ok

say "2. Which slave would be the master?"
mqx admin ha promote "$broker" --master-gone --role "${ROLE:-ASYNC_MASTER}" --dry-run
if [ "${DO:-no}" != yes ]; then
	say "Nothing was done. See to it that the old master stays stopped. DO=yes does it."
	exit 0
fi

say "3. It is promoted. Name servers let the higher epoch be the master."
mqx admin ha promote "$broker" --master-gone --role "${ROLE:-ASYNC_MASTER}" --yes

say "4. Does the group take messages?"
mqx wait broker "$broker" --within "${WITHIN:-60s}"
mqx admin ha status "$broker" --partial ok
say "When the old master is back: mqx admin ha demote ADDRESS, then mqx admin ha salvage ls $broker."
