package inspect

// Coverage says of a part of a store directory what Verify compares it with; docs/format/coverage.md is the page.
type Coverage struct {
	Part    string // what
	Covered bool   // a change in any byte of it is found
	By      string // what covers it, or why nothing does
}

// CoverageTable is what Verify covers and what nothing covers.
func CoverageTable() []Coverage {
	return []Coverage{
		{"record: size, magic code, lengths, physical offset", true, "the frame: the size must be the sum of the parts, the offset the place"},
		{"record: body, body CRC", true, "the body CRC"},
		{"record: every byte of one with __CRC32#", true, "its checksum"},
		{"record: topic, queue, queue offset", true, "the unit at that offset of that queue (records without a unit, prepared or rolled back: only their index entries)"},
		{"record: TAGS", true, "the tags code of the unit, the hash in the index"},
		{"record: UNIQ_KEY, KEYS", true, "the hashes in the index"},
		{"record: INNER_NUM, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET", true, "the units of the queues that they name"},
		{"record: DELAY in SCHEDULE_TOPIC_XXXX", true, "the time of delivery in the unit"},
		{"record: store timestamp", false, "only to the second, where the index has a key of the record; to the ms in delayed, batch and extension units, and in records with __CRC32#"},
		{"record: system flag", false, "IPv6 and transaction bits by frame and units; the others by nothing"},
		{"record: other properties", false, "nothing, unless the record has __CRC32#"},
		{"record: flag, born timestamp, born host, store host, reconsume times, prepared transaction offset", false, "nothing, unless the record has __CRC32#"},
		{"record: queue and queue offset of prepared and rolled back records", false, "nothing: they have no unit"},
		{"log: the size of a blank and what is behind its head", false, "nothing: no reader looks at it"},
		{"log: bytes behind the last record", true, "they must be zero"},
		{"log: files in front of the first one", false, "nothing: retention takes them too"},
		{"queue: units of records in the log", true, "the record"},
		{"queue: units of records that have left the log, fillers in front", false, "nothing: there is no record any more"},
		{"queue: bytes behind the last unit", true, "they must be zero"},
		{"batch queue: the last four bytes of a unit", false, "nothing: reserved"},
		{"extension units: tags code and store time", true, "the record"},
		{"extension units: bit map, units that no queue names", false, "nothing"},
		{"index: head, slots, entries", true, "the chains of the slots, and the records"},
		{"index: entry 0, entries behind the count, entries of records that have left the log", false, "nothing: no reader looks at them, or there is no record any more"},
		{"checkpoint", false, "only that it claims nothing that the log does not have"},
		{"config/*.json", false, "only that they can be read and are what their name says; consumer offsets and delay progress by the ends of the queues"},
		{"config/*.json: one that is missing without a backup, but for topics.json", false, "nothing: not every broker has every file"},
		{"mqx/stopped, mqx/durable, mqx/deleted-topics, mqx/held", true, "their CRC"},
		{"mqx/ends", false, "nothing: it is zeros, or what its CRC does not cover is not believed"},
		{"timerwheel: tick, first and last unit of slots that wait", true, "the chain of units in the timer log"},
		{"timerwheel: number and magic of a slot, slots that have been passed, snapshots but the newest", false, "nothing: no start depends on them"},
		{"timerlog: units that wait, but for their last eight bytes", true, "the chain of their slot, the message: place, size, topic, time"},
		{"timerlog: units that have been delivered", false, "only that they are units"},
		{"config/timercheck", false, "only that it claims nothing that timer log and timer topic do not have"},
		{"what lies at the places of the store: file or directory", true, "what belongs there; pipes, devices and links to nothing belong nowhere"},
		{"abort, lock, other files in the directory", false, "nothing looks at what they hold"},
	}
}
