package inspect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"mqx/internal/words"
	"mqx/message"
)

// maxImportLine is the longest line that is read: a body of 4 MiB in the longest form that JSON has, and its record.
const maxImportLine = 64 << 20

// maxQueues bounds the queues of a topic, as the broker does.
const maxQueues = 65536

// lineReader reads the lines of an import.
type lineReader struct {
	ctx  context.Context //nolint:containedctx // of one call of Import
	r    *bufio.Reader
	buf  []byte
	line int64 // number of the last line
	read int64 // bytes
	tell func(read int64)
}

func newLineReader(ctx context.Context, r io.Reader, tell func(int64)) *lineReader {
	return &lineReader{ctx: ctx, r: bufio.NewReaderSize(r, 256<<10), tell: tell}
}

// next is the next message; io.EOF is the end. Empty lines are passed over.
func (r *lineReader) next() (message.Line, error) {
	for {
		if r.line&1023 == 0 {
			if err := r.ctx.Err(); err != nil {
				return message.Line{}, err
			}
		}
		text, err := r.text()
		if err != nil {
			return message.Line{}, err
		}
		r.line++
		if r.tell != nil && r.line&255 == 0 {
			r.tell(r.read)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		l, err := message.ParseLine(text)
		if err == nil {
			err = checkLine(&l)
		}
		if err != nil {
			return l, &LineError{r.line, err}
		}
		return l, nil
	}
}

// waiting reports that the next line has not come yet.
func (r *lineReader) waiting() bool { return r.r.Buffered() == 0 }

func (r *lineReader) text() ([]byte, error) {
	r.buf = r.buf[:0]
	if cap(r.buf) > 4<<20 {
		r.buf = nil
	}
	for {
		part, err := r.r.ReadSlice('\n')
		r.read += int64(len(part))
		if err == nil && len(r.buf) == 0 {
			return part, nil
		}
		r.buf = append(r.buf, part...)
		switch {
		case len(r.buf) > maxImportLine:
			return nil, &LineError{r.line + 1, fmt.Errorf("it is longer than %s", words.Count(maxImportLine, "byte"))}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(r.buf) > 0, err == nil:
			return r.buf, nil
		}
		return nil, err
	}
}

func checkLine(l *message.Line) error {
	if l.Topic == "" {
		return errors.New("it has no topic")
	}
	if !message.NamesDirectory(l.Topic) {
		return fmt.Errorf("topic %.60q can be the name of no directory", l.Topic)
	}
	if l.QueueID != nil && *l.QueueID < 0 {
		return fmt.Errorf("queueId %d is negative", *l.QueueID)
	}
	if l.QueueID != nil && *l.QueueID >= maxQueues {
		return fmt.Errorf("queueId %d is more than a topic can have: %d is the last one", *l.QueueID, maxQueues-1)
	}
	if l.QueueOffset != nil && *l.QueueOffset > maxQueueOffset {
		return fmt.Errorf("queueOffset %d is more than a queue can hold", *l.QueueOffset)
	}
	if l.RecordMessage < 0 || l.LogFileSize < 0 {
		return errors.New("a number is negative")
	}
	if l.PhysicalOffset != nil && *l.PhysicalOffset < 0 {
		return fmt.Errorf("physicalOffset %d is negative", *l.PhysicalOffset)
	}
	return nil
}

// lineHash is a message's identity for a resumption: what an import does not change.
func lineHash(topic string, queue int32, body []byte, id string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%d\x00%s\x00", topic, queue, id)
	_, _ = h.Write(body)
	return h.Sum64()
}

func hashOfLine(l *message.Line) uint64 {
	queue := int32(0)
	if l.QueueID != nil {
		queue = *l.QueueID
	}
	return lineHash(l.Topic, queue, l.Body, l.Properties[message.PropUniqKey])
}

// open opens the lines; total is their length in bytes, 0 when it is not known.
func (i *importer) open(what string) (*lineReader, io.Closer, error) {
	in, err := i.o.Open()
	if err != nil {
		return nil, nil, err
	}
	total := int64(0)
	if s, ok := in.(interface{ Size() (int64, error) }); ok {
		if total, err = s.Size(); err != nil {
			return nil, nil, errors.Join(err, in.Close())
		}
	}
	return newLineReader(i.ctx, in, func(read int64) { i.o.OnProgress(what, read, total) }), in, nil
}

// survey reads all lines before anything is done, so that a line that is wrong changes nothing. f is given each.
func (i *importer) survey(f func(n int64, l *message.Line) error) error {
	if i.o.Once {
		return nil
	}
	r, c, err := i.open("check")
	if err != nil {
		return err
	}
	err = i.each(r, f)
	i.plan.Known = true
	return errors.Join(err, c.Close())
}

// each hands over the lines.
func (i *importer) each(r *lineReader, f func(n int64, l *message.Line) error) error {
	for {
		l, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(r.line, &l); err != nil {
			if _, ok := errors.AsType[*LineError](err); ok || i.ctx.Err() != nil {
				return err
			}
			return &LineError{r.line, err}
		}
	}
}

// count adds a line that becomes a message to the plan.
func (p *ImportPlan) count(l *message.Line) {
	p.Messages++
	id := int32(0)
	if l.QueueID != nil {
		id = *l.QueueID
	}
	if n := p.Topics[l.Topic]; n <= id {
		p.Topics[l.Topic] = id + 1
	}
	if t := l.StoreTimestamp; t > 0 {
		if p.First == 0 || t < p.First {
			p.First = t
		}
		p.Last = max(p.Last, t)
	}
}

// tooFew are the topics that have no entry, or too few queues, in what is configured.
func (p *ImportPlan) tooFew(configured map[string]TopicConfig) {
	p.NewTopics, p.MoreQueues = nil, nil
	for topic, n := range p.Topics {
		c, ok := configured[topic]
		switch {
		case message.IsLMQ(topic):
		case !ok:
			p.NewTopics = append(p.NewTopics, topic)
		case c.ReadQueues < int64(n) || c.WriteQueues < int64(n):
			p.MoreQueues = append(p.MoreQueues, topic)
		}
	}
	slices.Sort(p.NewTopics)
	slices.Sort(p.MoreQueues)
}

// splitNames are the names of a list with commas.
func splitNames(list []byte) []string {
	var out []string
	for name := range bytes.SplitSeq(list, []byte{','}) {
		if len(name) > 0 {
			out = append(out, string(name))
		}
	}
	return out
}
