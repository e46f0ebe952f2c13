// Package consumequeue is the queues of topics: for every message of a queue one unit of 20 bytes that says where in the
// commit log its record lies, how long it is, and the hash of its tags. The bytes are docs/format/consumequeue.md.
//
// Queue files are created at full size, sparse, and written with pwrite: a full disk is an error and never a fault. New
// units stay in memory (visible to readers at once) until WriteOut, which the owner calls at its own pace; what a crash
// takes is rebuilt from the log. Nothing is mapped, and the files of all queues share a bounded set of descriptors, so
// that 40,000 queues need neither mappings nor descriptors of their own.
package consumequeue
