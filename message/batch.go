package message

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
)

// Batch item layout: size 4, magic 4 (0), body CRC 4 (0), flag 4, body length 4, body, properties length 2, properties.
// Rule: docs/format/batch.md.
const (
	itemPosFlag    = 12
	itemPosBodyLen = 16
	itemPosBody    = 20

	// BatchItemOverhead is the number of bytes of an item besides its body and properties.
	BatchItemOverhead = itemPosBody + 2
)

// BatchItem is one message of a batch body. Body and Properties alias the body.
type BatchItem struct {
	Flag       int32
	Body       []byte
	Properties []byte
}

// BatchError says where a batch body is broken.
type BatchError struct {
	Pos       int    // of the item, in bytes from the start of the body
	Index     int    // of the item, from 0
	What      string // the field
	Want, Got int64  // Want: the bound that Got violates
}

// Error names the item, the field, its bound and its value.
func (e *BatchError) Error() string {
	return fmt.Sprintf("batch: item %d at byte %d: %s: want at most %d, got %d", e.Index, e.Pos, e.What, e.Want, e.Got)
}

// SplitBatch iterates over the items of a batch body. A broken item ends the iteration with a *BatchError; the items
// before it have been given already, so a caller that must take all or nothing counts first (CountBatch). An empty
// body has no items. It does not allocate.
func SplitBatch(body []byte) iter.Seq2[BatchItem, error] {
	return func(yield func(BatchItem, error) bool) {
		for pos, index := 0, 0; pos < len(body); index++ {
			item, n, what, want, got := splitItem(body[pos:])
			if n == 0 {
				yield(BatchItem{}, &BatchError{pos, index, what, want, got})
				return
			}
			if !yield(item, nil) {
				return
			}
			pos += n
		}
	}
}

// CountBatch checks a whole batch body and returns the number of its items, or the *BatchError of the first broken one.
func CountBatch(body []byte) (int, error) {
	count := 0
	for _, err := range SplitBatch(body) {
		if err != nil {
			return 0, err
		}
		count++
	}
	return count, nil
}

// splitItem takes the first item. n is 0 if it is broken, and then what, want and got say how.
func splitItem(b []byte) (item BatchItem, n int, what string, want, got int64) {
	if len(b) < BatchItemOverhead {
		return item, 0, "item overhead", int64(len(b)), BatchItemOverhead
	}
	be := binary.BigEndian
	size := int64(int32(be.Uint32(b)))
	if size < BatchItemOverhead || size > int64(len(b)) {
		return item, 0, "size", int64(len(b)), size
	}
	free := size - BatchItemOverhead
	bodyLen := int64(int32(be.Uint32(b[itemPosBodyLen:])))
	if bodyLen < 0 || bodyLen > free {
		return item, 0, "body length", free, bodyLen
	}
	p := itemPosBody + int(bodyLen)
	free -= bodyLen
	propsLen := int64(int16(be.Uint16(b[p:])))
	if propsLen < 0 || propsLen > free {
		return item, 0, "properties length", free, propsLen
	}
	if propsLen != free { // Apache goes on behind the parts and never looks at the size
		return item, 0, "size", size - free + propsLen, size
	}
	item.Flag = int32(be.Uint32(b[itemPosFlag:]))
	item.Body = b[itemPosBody:p:p]
	p += 2
	end := p + int(propsLen)
	item.Properties = b[p:end:end]
	return item, int(size), "", 0, 0
}

// AppendBatchItem appends one message to a batch body. It panics with a *LimitError if props is longer than 32767
// bytes or the item does not fit 2 GiB.
func AppendBatchItem(dst []byte, flag int32, body, props []byte) []byte {
	if len(props) > MaxPropertiesLen {
		panic(&LimitError{Field: "properties", Len: len(props), Limit: MaxPropertiesLen})
	}
	if len(body) > math.MaxInt32-BatchItemOverhead-MaxPropertiesLen {
		panic(&LimitError{Field: "body", Len: len(body), Limit: math.MaxInt32 - BatchItemOverhead - MaxPropertiesLen})
	}
	n := BatchItemOverhead + len(body) + len(props)
	dst = slices.Grow(dst, n)
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(n))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0) // magic and body CRC
	dst = be.AppendUint32(dst, uint32(flag))
	dst = be.AppendUint32(dst, uint32(len(body)))
	dst = append(dst, body...)
	dst = be.AppendUint16(dst, uint16(len(props)))
	return append(dst, props...)
}
