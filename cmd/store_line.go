package cmd

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"unicode/utf8"

	"mqx/internal/render"
	"mqx/internal/sorted"
	"mqx/message"
	"mqx/store/inspect"
)

// recordLines makes lines of storeLogSchema: what storeRecordRows and render.Writer make of the same records, for millions
// of them. It belongs to one goroutine.
type recordLines struct {
	f     *messageFlags
	match inspect.Match
	lines *render.Encoder
	lean  bool

	pairs []pair
	buf   []byte
}

type pair struct{ name, value []byte }

// format makes a Format for one goroutine of a scan.
func (f *messageFlags) format(w *render.Writer, m inspect.Match) func() inspect.Format {
	return func() inspect.Format {
		l := &recordLines{f: f, match: m, lines: w.Encoder(), lean: w.Lean()}
		return l.append
	}
}

// append appends the lines of a record.
func (l *recordLines) append(dst []byte, v message.View) ([]byte, error) {
	if v.SysFlag()&(message.FlagCompressed|message.FlagInnerBatch) != 0 {
		err := l.f.storeRecordRows(v, l.match, l.lean, func(row []any) error {
			var err error
			dst, err = l.lines.Row(dst, row...)
			return err
		})
		return dst, err
	}
	e := l.lines
	e.Begin(dst)
	e.Int(v.PhysicalOffset())
	e.Int(int64(v.Size()))
	e.TimeMs(v.StoreTimestamp())
	e.Text(v.Topic())
	e.Int(int64(v.QueueID()))
	e.Int(v.QueueOffset())
	props := v.Properties()
	l.tagAndKeys(props)
	body := v.Body()
	encoding := l.body(body)
	if e.Skips(len(storeMessageFields) - leanFields) {
		return e.End(), nil
	}
	e.String(encoding)
	e.Int(int64(len(body)))
	l.ids(v, props)
	e.TimeMs(v.BornTimestamp())
	l.host(v.BornHost())
	l.host(v.StoreHost())
	e.Int(int64(v.ReconsumeTimes()))
	e.Int(v.PreparedTransactionOffset())
	e.String(transactionName(v.Transaction()))
	e.String(compressionName(v.SysFlag()))
	e.Int(1)
	e.Int(int64(versionOf(v)))
	e.String(crcState(v))
	e.Int(int64(v.Flag()))
	e.Int(int64(v.SysFlag()))
	l.properties(props)
	return e.End(), nil
}

func (l *recordLines) tagAndKeys(props []byte) {
	tag, _ := message.Property(props, message.PropTags)
	if l.f.redact && len(tag) > 0 {
		tag = hiddenBytes
	}
	l.lines.Text(tag)
	keys, _ := message.Property(props, message.PropKeys)
	l.lines.BeginList()
	for word, rest := message.NextKey(keys); word != nil; word, rest = message.NextKey(rest) {
		if l.f.redact {
			word = hiddenBytes
		}
		l.lines.Item(word)
	}
	l.lines.EndList()
}

var hiddenBytes = []byte(hidden)

// body writes what bodyText makes of a body.
func (l *recordLines) body(b []byte) (encoding string) {
	switch {
	case l.f.redact:
		l.lines.Text(hiddenBytes)
		return "none"
	case l.f.body == "none":
		l.lines.Null()
		return "none"
	case l.f.body == "hex":
		l.buf = hex.AppendEncode(l.buf[:0], b)
		l.lines.Text(l.buf)
		return "hex"
	case l.f.body == "base64" || !utf8.Valid(b):
		l.buf = base64.StdEncoding.AppendEncode(l.buf[:0], b)
		l.lines.Text(l.buf)
		return "base64"
	default:
		l.lines.Text(b)
		return "text"
	}
}

func (l *recordLines) ids(v message.View, props []byte) {
	l.buf = message.AppendOffsetID(l.buf[:0], v.StoreHost(), v.PhysicalOffset())
	id, ok := message.Property(props, message.PropUniqKey)
	if !ok {
		id = l.buf
	}
	l.lines.Text(id)
	l.lines.Text(l.buf)
}

func (l *recordLines) host(h netip.AddrPort) {
	l.buf = h.AppendTo(l.buf[:0])
	l.lines.Text(l.buf)
}

// properties writes them by name; of duplicates the last one counts.
func (l *recordLines) properties(props []byte) {
	l.pairs = l.pairs[:0]
	message.EachProperty(props, func(name, value []byte) bool {
		l.pairs = append(l.pairs, pair{name, value})
		return true
	})
	sorted.Stably(l.pairs, func(a, b pair) int { return bytes.Compare(a.name, b.name) })
	l.lines.BeginPairs()
	for i, p := range l.pairs {
		if i+1 < len(l.pairs) && bytes.Equal(p.name, l.pairs[i+1].name) {
			continue
		}
		if l.f.redact {
			p.value = hiddenBytes
		}
		l.lines.Pair(p.name, p.value)
	}
	l.lines.EndPairs()
}
