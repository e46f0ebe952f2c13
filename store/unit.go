package store

// Unit is one unit of a consume queue.
type Unit struct {
	QueueOffset    int64
	PhysicalOffset int64
	Size           int32
	TagsCode       int64
}
