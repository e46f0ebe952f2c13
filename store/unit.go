package store

import "mqx/store/consumequeue"

// Unit is one unit of a consume queue.
type Unit struct {
	QueueOffset    int64
	PhysicalOffset int64
	Size           int32
	// TagsCode is the real one, also where the unit points to an extension unit, as long as that can be read.
	TagsCode int64
	// Ext is the extension unit, nil for none.
	Ext *ExtUnit
}

// ExtLost reports whether the unit points to an extension unit that cannot be found: TagsCode is its address.
func (u Unit) ExtLost() bool { return u.Ext == nil && consumequeue.IsExtAddr(u.TagsCode) }

// Missing reports whether the unit stands for no record: the record was never readable, or is gone.
func (u Unit) Missing() bool { return u.Size == consumequeue.FillerSize || u.Size <= 0 }

// TagsElsewhere reports whether TagsCode is the address of a unit in consumequeue_ext, which holds the code.
func (u Unit) TagsElsewhere() bool { return consumequeue.IsExtAddr(u.TagsCode) }
