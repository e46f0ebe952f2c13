package remoting

// ShortSendNames reports whether requests of this code carry the send header
// with the short field names a to n.
func ShortSendNames(code int32) bool {
	return code == ReqSendMessageV2 || code == ReqSendBatchMessage || code == ReqSendReplyMessageV2
}

// SendMessageView is SendMessageHeader with texts that alias the fields, for
// the send path: reading it allocates nothing.
type SendMessageView struct {
	ProducerGroup         []byte
	Topic                 []byte
	DefaultTopic          []byte
	Properties            []byte
	BName                 []byte
	NS                    []byte
	BornTimestamp         int64
	DefaultTopicQueueNums int32
	QueueID               int32
	SysFlag               int32
	Flag                  int32
	ReconsumeTimes        int32
	MaxReconsumeTimes     Opt[int32]
	UnitMode              bool
	Batch                 bool
	Lo                    Opt[bool]
	NSD                   Opt[bool]
	Oneway                Opt[bool]
}

// sendNames are the long names of the required fields, by short name from a.
var sendNames = [...]string{
	"producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag",
}

// Short names of the fields that have none on the wire.
const (
	shortLo = 0x80 + iota
	shortNS
	shortNSD
	shortOneway
)

// sendShortName returns the short name of a field of the send header, 0 for
// other fields.
func sendShortName(key []byte) byte {
	if len(key) == 1 {
		return key[0]
	}
	switch string(key) {
	case "producerGroup":
		return 'a'
	case "topic":
		return 'b'
	case "defaultTopic":
		return 'c'
	case "defaultTopicQueueNums":
		return 'd'
	case "queueId":
		return 'e'
	case "sysFlag":
		return 'f'
	case "bornTimestamp":
		return 'g'
	case "flag":
		return 'h'
	case "properties":
		return 'i'
	case "reconsumeTimes":
		return 'j'
	case "unitMode":
		return 'k'
	case "maxReconsumeTimes":
		return 'l'
	case "batch":
		return 'm'
	case "bname":
		return 'n'
	case "lo":
		return shortLo
	case "ns":
		return shortNS
	case "nsd":
		return shortNSD
	case "oway":
		return shortOneway
	}
	return 0
}

// Decode fills v from the fields of a send request, in long or short names. A
// missing field is reported under its short name when short is set.
func (v *SendMessageView) Decode(f Fields, short bool) error {
	*v = SendMessageView{}
	var seen uint32
	for i := range f {
		fd := &f[i]
		if fd.Value == nil {
			continue
		}
		name := sendShortName(fd.Key)
		if err := v.set(name, fd); err != nil {
			return err
		}
		if 'a' <= name && name <= 'n' && (len(fd.Value) > 0 || name <= 'c') {
			seen |= 1 << (name - 'a')
		}
	}
	for i, name := range sendNames {
		if seen&(1<<i) == 0 {
			if short {
				name = string(rune('a' + i))
			}
			return &MissingFieldError{Field: name}
		}
	}
	return nil
}

func (v *SendMessageView) set(name byte, fd *Field) error {
	switch name {
	case 'a':
		v.ProducerGroup = fd.Value
	case 'b':
		v.Topic = fd.Value
	case 'c':
		v.DefaultTopic = fd.Value
	case 'd':
		return int32Field(fd, &v.DefaultTopicQueueNums)
	case 'e':
		return int32Field(fd, &v.QueueID)
	case 'f':
		return int32Field(fd, &v.SysFlag)
	case 'g':
		return int64Field(fd, &v.BornTimestamp)
	case 'h':
		return int32Field(fd, &v.Flag)
	case 'i':
		v.Properties = fd.Value
	case 'j':
		return int32Field(fd, &v.ReconsumeTimes)
	case 'k':
		v.UnitMode = parseBool(fd.Value)
	case 'l':
		v.MaxReconsumeTimes.OK = len(fd.Value) > 0
		return int32Field(fd, &v.MaxReconsumeTimes.Value)
	case 'm':
		v.Batch = parseBool(fd.Value)
	case 'n':
		v.BName = fd.Value
	case shortLo:
		v.Lo = Some(parseBool(fd.Value))
	case shortNS:
		v.NS = fd.Value
	case shortNSD:
		v.NSD = Some(parseBool(fd.Value))
	case shortOneway:
		v.Oneway = Some(parseBool(fd.Value))
	}
	return nil
}

// int32Field reads a number; an empty value counts as absent.
func int32Field(fd *Field, dst *int32) error {
	if len(fd.Value) == 0 {
		return nil
	}
	n, err := parseInt(fd.Value, 32)
	if err != nil {
		return fieldError(fd, err)
	}
	*dst = int32(n)
	return nil
}

func int64Field(fd *Field, dst *int64) error {
	if len(fd.Value) == 0 {
		return nil
	}
	n, err := parseInt(fd.Value, 64)
	if err != nil {
		return fieldError(fd, err)
	}
	*dst = n
	return nil
}

// EncodeSend sets the fields of a send request, with short names when short is
// set.
func EncodeSend(f *Fields, h *SendMessageHeader, short bool) {
	if !short {
		EncodeHeader(f, h)
		return
	}
	w := fieldWriter{fields: *f}
	w.string("a", h.ProducerGroup)
	w.string("b", h.Topic)
	w.string("c", h.DefaultTopic)
	w.int("d", int64(h.DefaultTopicQueueNums))
	w.int("e", int64(h.QueueID))
	w.int("f", int64(h.SysFlag))
	w.int("g", h.BornTimestamp)
	w.int("h", int64(h.Flag))
	w.text("i", h.Properties)
	w.int("j", int64(h.ReconsumeTimes))
	w.string("k", strconvBool(h.UnitMode))
	if h.MaxReconsumeTimes.OK {
		w.int("l", int64(h.MaxReconsumeTimes.Value))
	}
	w.string("m", strconvBool(h.Batch))
	w.text("n", h.BName)
	w.rest(&h.TopicHeader)
	*f = w.fields
}

// rest writes what no short name stands for.
func (w *fieldWriter) rest(h *TopicHeader) {
	for _, o := range [...]struct {
		name string
		v    Opt[bool]
	}{{"lo", h.Lo}, {"nsd", h.NSD}, {"oway", h.Oneway}} {
		if o.v.OK {
			w.string(o.name, strconvBool(o.v.Value))
		}
	}
	w.text("ns", h.NS)
}

func strconvBool(v bool) string {
	if v {
		return "true"
	}
	return "false"
}
