package store

import "mqx/store/consumequeue"

// Unit is one unit of a consume queue.
type Unit struct {
	QueueOffset    int64
	PhysicalOffset int64
	Size           int32
	TagsCode       int64
}

// Missing reports whether the unit stands for no record: the record was never readable, or is gone.
func (u Unit) Missing() bool { return u.Size == consumequeue.FillerSize || u.Size <= 0 }

// TagsElsewhere reports whether TagsCode is the address of a unit in consumequeue_ext, which holds the code.
func (u Unit) TagsElsewhere() bool { return consumequeue.IsExtAddr(u.TagsCode) }
