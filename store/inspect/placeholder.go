package inspect

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"mqx/internal/words"
	"mqx/message"
)

// A placeholder stands where a record could not be read. docs/format/recovery.md, "Placeholders".
//
// It carries topic, queue and queue offset of what was lost, so that every broker that builds the queue from the log
// gives that offset a unit and no later message another offset. Its flags say that the body is a compressed batch that
// the client has to take apart, and the batch is empty: clients deliver nothing. Where nothing is known of what was lost
// it is marked as rolled back, which no broker puts into a queue or an index.

const (
	// PropSkipped marks a placeholder.
	PropSkipped = "MQX_SKIPPED"
	// fillerTopic is the topic of placeholders that stand for no queue offset.
	fillerTopic = "mqx-skipped"
	// maxPlaceholder bounds a placeholder: brokers take bodies of up to 4 MiB.
	maxPlaceholder = 4 << 20
)

// emptyZlib is a zlib stream of no bytes. What follows it in a body is not looked at.
var emptyZlib = []byte{0x78, 0x9C, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01}

var noHost = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)

// placeholder makes the record of size bytes at phys that keeps the queue offset of l; nil when it does not fit.
func placeholder(l stepLost, phys, size, storeTime int64) []byte {
	r := message.Record{
		QueueID: l.Queue, QueueOffset: l.Offset, PhysicalOffset: phys, BornTimestamp: storeTime, StoreTimestamp: storeTime,
		BornHost: noHost, StoreHost: noHost, Topic: []byte(l.Topic), Body: emptyZlib,
		SysFlag: message.FlagInnerBatch | message.FlagNeedUnwrap | message.FlagCompressed,
	}
	if l.Batch {
		r.Properties = message.AppendProperty(r.Properties, message.PropInnerNum, strconv.Itoa(int(l.Count)))
		r.Properties = message.AppendProperty(r.Properties, message.PropInnerBase, strconv.FormatInt(l.Offset, 10))
	}
	plain := slices.Clone(r.Properties)
	r.Properties = message.AppendProperty(r.Properties, PropSkipped, "1")
	if int64(r.EncodedLen(false)) > size {
		r.Properties = plain
	}
	return padded(&r, size)
}

// filler makes the record of size bytes at phys that stands for nothing; nil when it does not fit.
func filler(phys, size, storeTime int64) []byte {
	r := message.Record{
		PhysicalOffset: phys, BornTimestamp: storeTime, StoreTimestamp: storeTime, BornHost: noHost, StoreHost: noHost,
		Topic: []byte(fillerTopic), SysFlag: message.TransactionRollback,
	}
	for int64(r.EncodedLen(false)) > size && len(r.Topic) > 1 {
		r.Topic = r.Topic[:len(r.Topic)-1]
	}
	return padded(&r, size)
}

// padded encodes a record whose body is made as long as it takes.
func padded(r *message.Record, size int64) []byte {
	more := size - int64(r.EncodedLen(false))
	if more < 0 {
		return nil
	}
	r.Body = append(slices.Clone(r.Body), make([]byte, more)...)
	return r.Append(make([]byte, 0, size), false)
}

// minFiller is the least size of a record that stands for nothing.
const minFiller = message.MinRecordLen + 1

// piece is a part of a range that is filled with one record, or a blank.
type piece struct {
	from, to int64
	lost     *stepLost
	blank    bool
}

// layPieces divides a range within one file among placeholders. The file ends at end; a range that reaches it ends in a
// blank.
func layPieces(from, to, end int64, lost []stepLost) []piece {
	var out []piece
	at := from
	limit := to
	if to == end {
		limit = end - message.BlankLen
	}
	for i := range lost {
		l := &lost[i]
		start := max(l.Phys, at)
		if start >= limit || l.Phys < from {
			continue
		}
		if start-at < minFiller {
			start = at // what is left between is too short for a record
		} else {
			out = append(out, piece{from: at, to: start})
		}
		stop := min(max(l.Phys+int64(l.Size), start), limit)
		next := limit
		if i+1 < len(lost) && lost[i+1].Phys > start {
			next = min(limit, lost[i+1].Phys)
		}
		if to != end && next == limit && limit-stop < minFiller {
			stop = limit
		}
		if next < limit && next-stop < minFiller {
			stop = next
		}
		out = append(out, piece{from: start, to: min(stop, max(next, start)), lost: l})
		at = out[len(out)-1].to
	}
	switch {
	case to == end && at < end:
		out = append(out, piece{from: at, to: end, blank: true})
	case at < to:
		out = append(out, piece{from: at, to: to})
	}
	return splitPieces(out)
}

// splitPieces divides pieces that are too long for a record.
func splitPieces(list []piece) []piece {
	var out []piece
	for _, p := range list {
		for !p.blank && p.to-p.from > maxPlaceholder {
			cut := p.from + maxPlaceholder/2
			out = append(out, piece{from: p.from, to: cut, lost: p.lost})
			p.from, p.lost = cut, nil
		}
		out = append(out, p)
	}
	return out
}

// ErrNoFit says that a range of the log is too short for any record.
var ErrNoFit = errors.New("no record is so short")

// fits is ErrNoFit for a piece that nothing can be put into.
func (p piece) fits() error {
	least := int64(minFiller)
	if p.blank {
		least = message.BlankLen
	}
	if size := p.to - p.from; size < least {
		return fmt.Errorf("cannot fill %s of the log at %d: %w", words.Count(size, "byte"), p.from, ErrNoFit)
	}
	return nil
}

// canFill is ErrNoFit for a step whose range is too short for what has to lie there.
func (s *Step) canFill() error {
	return s.files(func(_ string, _, end, from, to int64) error {
		for _, p := range layPieces(from, to, end, s.Lost) {
			if err := p.fits(); err != nil {
				return err
			}
		}
		return nil
	})
}

// canFill is the error of the first step that is left and cannot be done.
func (p *RepairPlan) canFill() error {
	for _, s := range p.Steps {
		if s.Kind == StepFill && !s.Done {
			if err := s.canFill(); err != nil {
				return err
			}
		}
	}
	return nil
}

// encode makes the bytes of a piece. A blank has only its head.
func (p piece) encode(storeTime int64) ([]byte, error) {
	if err := p.fits(); err != nil {
		return nil, err
	}
	size := p.to - p.from
	if p.blank {
		return message.AppendBlank(nil, int32(size)), nil
	}
	if p.lost != nil {
		if b := placeholder(*p.lost, p.from, size, storeTime); b != nil {
			return b, nil
		}
	}
	if b := filler(p.from, size, storeTime); b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("cannot fill %s of the log at %d: %w", words.Count(size, "byte"), p.from, ErrNoFit)
}
