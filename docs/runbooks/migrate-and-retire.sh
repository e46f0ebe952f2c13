#!/usr/bin/env bash
# A broker is replaced: its queues move to a new one, under clients that know nothing of it,
# and the old one is retired.
#
#   migrate-and-retire.sh OLD NEW                 shows what would be done
#   DO=yes migrate-and-retire.sh OLD NEW 'ssh old-host systemctl stop mqx-broker'
#
# NEW runs already, at best started with --join empty. The last argument stops OLD when it is
# empty; without it the runbook stops there and says so. ROUTES is how long clients take to
# learn of new routes (30s). Every group must read what is left on OLD, so this may take as
# long as they do: after an interruption the same command goes on, from any machine. Ends
# with 6 where it must not begin, with 8 where OLD could not be emptied within WITHIN (1h).
set -euo pipefail

usage='usage: migrate-and-retire.sh OLD NEW [COMMAND]'
old=${1:?$usage} new=${2:?$usage} stop=${3:-}
say() { printf '\n== %s\n' "$*"; }
# While nothing is done, what is still to be made right does not stop the story.
tolerate() { [ "${DO:-no}" != yes ] || exit "$1"; }
phase() { mqx admin broker retire status --match "name=$old" --sort -written --limit 1 -o template='{{.phase}}'; }

at=$(phase)
case $at in
"" | ROLLED_BACK | DONE) at=new ;;
*) say "It was begun before, and is $at." ;;
esac
if [ "$at" = new ]; then
	leave=--dry-run
	[ "${DO:-no}" = yes ] && leave=--yes
	say "1. Both are there. The groups of $old must be on $new before it has a queue of theirs."
	mqx admin broker get "$old"
	mqx admin broker get "$new"
	mqx admin broker seed "$new" --source "$old" $leave

	say "2. Do they agree on what they must agree on?"
	mqx admin cluster join-check -b "$new" --max-disk "${MAX:-85}" --match 'verdict!=ok' || tolerate $?

	say "3. A broker that was started with --join empty takes no messages before it is told to."
	mqx admin config set brokerPermission=6 -b "$new" $leave

	say "4. What would move, and what has to be read first."
	mqx admin broker retire plan "$old" --target "$new" --route-interval "${ROUTES:-30s}" || tolerate $?
fi
if [ "${DO:-no}" != yes ]; then
	say "Nothing was done. DO=yes does it."
	exit 0
fi

say "5. The queues move. mqx admin broker retire status $old --watch says how far it is."
case $at in
new) mqx admin broker retire start "$old" --target "$new" --route-interval "${ROUTES:-30s}" --timeout "${WITHIN:-1h}" --yes ;;
SETTLED | REMOVED) say "They have moved already." ;;
*) mqx admin broker retire resume "$old" --timeout "${WITHIN:-1h}" --yes ;;
esac

say "6. $old is empty: what is written now goes to $new."
mqx admin topic ls --match "brokers~$new"
if [ -z "$stop" ]; then
	say "$old is not stopped yet. Say how, and this goes on: $0 $old $new 'COMMAND'"
	exit 0
fi

say "7. The name servers forget it, and it is stopped."
mqx admin broker retire finish "$old" --timeout "${WITHIN:-1h}" --confirm "$old" &
finish=$!
# What is left of its topics goes first; then it may stop, and must, for the plan to end.
until [ "$(phase)" = REMOVED ] || ! kill -0 "$finish" 2>/dev/null; do sleep 1; done
sh -c "$stop"
wait "$finish"

say "8. What is left:"
mqx admin broker ls
mqx admin broker retire status --match "name=$old" --sort -written --limit 1
