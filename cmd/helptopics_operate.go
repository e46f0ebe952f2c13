package cmd

const helpPlans = `
Every change can be looked at, kept, done later and taken back.

  mqx admin topic create ORDERS --queues 8 --dry-run     show it, do nothing
  ... --dry-run --exit-code                              6 when something would change
  ... --plan-out orders.json                             keep it
  mqx admin plan apply orders.json --yes                 do it, on the cluster it was made for
  mqx admin undo --list                                  what was changed from here
  mqx admin undo ID --yes                                take it back

plan apply plans anew and compares. Other brokers, queues, configuration or groups
than the plan rests on refuse it (exit code 6); messages that came since do not. What
is already so is done: exit code 0. A plan holds no credentials. One that sends
messages sends each of them once, however often it is applied.

Long-running acts (queue migrate, drain, resize, cluster rebalance and roll, broker
retire) have the same verbs everywhere: plan shows what would be done, start does it,
status says how far it is, pause and resume, rollback where that can be, finish ends
it. Ctrl-C leaves them as they are; resume goes on. mqx help moving says more.`

const helpFilters = `
--tag EXPR     messages with one of these tags: 'paid', 'paid || refunded', '*' for all
--where SQL    an SQL92 condition over the properties of a message:
                 amount > 100 AND region IN ('eu', 'us')
                 TAGS = 'paid' · KEYS IS NOT NULL · name CONTAINS 'x'
                 a BETWEEN 1 AND 5 · NOT (a = 1 OR b STARTSWITH 'y')
               A property that is missing is null, and null is not matched. Text is
               turned into a number where it is compared with one. Names are letters,
               digits, _ and $; a property with another name cannot be asked for.
--start, --end a range: mqx help positions
--match EXPR   rows of a list, by their fields: mqx help match

--tag and --where mean the same wherever messages are read. mqx looks at the tag and
the properties of each message itself, so that no broker needs enablePropertyFilter;
mqx consume -g GROUP --commit subscribes with the expression, and the broker filters.`

const helpMoving = `
A new broker     mqx broker start --join empty       groups of the cluster, no topic
                 mqx admin cluster join-check -b B   clocks, lists, ports, disks, versions
                 mqx admin broker seed B --source A  groups, chosen topics, offsets
                 mqx admin topic spread T --target B
Load             mqx admin cluster rebalance plan    proposes which queues go where
A restart        mqx admin cluster roll plan --plan-out roll.json
                 mqx admin cluster roll start roll.json \
                   --restart-cmd 'ssh {host} systemctl restart mqx-broker'

A topic on a new broker starts with empty queues. Groups that read it get offset 0
there before the queue can be seen; without it, clients that begin at the end skip its
first messages. The permission of a topic is not checked when a message is sent to an
Apache broker: it only tells clients where to go, and those that have not asked again
(30 s) go on. brokerPermission is checked for ordered topics only.

A restart waits for a gate before and after each broker: nobody writes any more, then
it is back, has read its log, is registered everywhere, its replicas are in sync. A gate
that does not open in time stops the roll; nothing else is touched, and
mqx admin cluster roll resume goes on from there. One run at a time restarts brokers of
a cluster, whichever copy of the file it has.`
