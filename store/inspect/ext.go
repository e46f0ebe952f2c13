package inspect

import (
	"encoding/binary"
	"math"

	"mqx/store/consumequeue"
)

const extHead = 20 // bytes of an extension unit before its bit map

func readExt(q *Queue, addr int64) (u consumequeue.ExtUnit, ok bool, err error) {
	off := addr - math.MinInt64
	var head [extHead]byte
	if ok, err = q.extBytes(head[:], off); !ok || err != nil {
		return u, false, err
	}
	be := binary.BigEndian
	size, bits := int(int16(be.Uint16(head[:]))), int(be.Uint16(head[18:]))
	if size < extHead || bits != size-extHead {
		return u, false, nil
	}
	u = consumequeue.ExtUnit{TagsCode: int64(be.Uint64(head[2:])), StoreTime: int64(be.Uint64(head[10:])), BitMap: make([]byte, bits)}
	ok, err = q.extBytes(u.BitMap, off+extHead)
	return u, ok, err
}
