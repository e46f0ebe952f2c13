package broker

import (
	"errors"
	"strconv"
	"unsafe"

	"mqx/remoting"
)

// sendHeader is the header of a send request. Byte slices alias the request.
type sendHeader struct {
	group, topic, defaultTopic, properties []byte
	defaultQueues, queueID, sysFlag, flag  int32
	bornTimestamp                          int64
	reconsumeTimes                         int32
	maxReconsumeTimes                      int32
	hasMaxReconsume                        bool
	unitMode, batch                        bool
}

// longSendNames maps the names of code 10 to the short ones of 310 and 320.
var longSendNames = map[string]byte{
	"producerGroup": 'a', "topic": 'b', "defaultTopic": 'c', "defaultTopicQueueNums": 'd', "queueId": 'e',
	"sysFlag": 'f', "bornTimestamp": 'g', "flag": 'h', "properties": 'i', "reconsumeTimes": 'j', "unitMode": 'k',
	"maxReconsumeTimes": 'l', "batch": 'm',
}

// shortName is the short name of a field, 0 for another one.
func shortName(key []byte) byte {
	if len(key) == 1 {
		return key[0]
	}
	return longSendNames[string(key)]
}

// requiredSend are the fields that must be there, by their long names.
var requiredSend = [...]struct {
	short byte
	name  string
}{
	{'a', "producerGroup"},
	{'b', "topic"},
	{'c', "defaultTopic"},
	{'d', "defaultTopicQueueNums"},
	{'e', "queueId"},
	{'f', "sysFlag"},
	{'g', "bornTimestamp"},
	{'h', "flag"},
}

// decode reads the fields in one pass without allocating.
func (h *sendHeader) decode(fields remoting.Fields) error {
	*h = sendHeader{}
	var seen uint32
	for i := range fields {
		f := &fields[i]
		if f.Value == nil {
			continue
		}
		c := shortName(f.Key)
		if c < 'a' || c > 'n' {
			continue
		}
		if err := h.field(c, f.Value); err != nil {
			return &remoting.FieldError{Field: string(f.Key), Value: string(f.Value), Err: err}
		}
		seen |= 1 << (c - 'a')
	}
	for _, r := range requiredSend {
		if seen&(1<<(r.short-'a')) == 0 {
			return &remoting.MissingFieldError{Field: r.name}
		}
	}
	return nil
}

func (h *sendHeader) field(c byte, v []byte) (err error) {
	switch c {
	case 'a':
		h.group = v
	case 'b':
		h.topic = v
	case 'c':
		h.defaultTopic = v
	case 'd':
		h.defaultQueues, err = atoi32(v)
	case 'e':
		h.queueID, err = atoi32(v)
	case 'f':
		h.sysFlag, err = atoi32(v)
	case 'g':
		h.bornTimestamp, err = atoi64(v)
	case 'h':
		h.flag, err = atoi32(v)
	case 'i':
		h.properties = v
	case 'j':
		h.reconsumeTimes, err = atoi32(v)
	case 'k':
		h.unitMode = isTrueBytes(v)
	case 'l':
		h.maxReconsumeTimes, err = atoi32(v)
		h.hasMaxReconsume = err == nil
	case 'm':
		h.batch = isTrueBytes(v)
	}
	return err
}

func isTrueBytes(v []byte) bool {
	return len(v) == 4 && v[0]|0x20 == 't' && v[1]|0x20 == 'r' && v[2]|0x20 == 'u' && v[3]|0x20 == 'e'
}

var errNumber = errors.New("not a number")

// atoi64 reads a decimal number as Java's Long.parseLong does.
func atoi64(v []byte) (int64, error) {
	if len(v) == 0 || len(v) > 20 {
		return 0, errNumber
	}
	n, err := strconv.ParseInt(unsafe.String(&v[0], len(v)), 10, 64)
	if err != nil {
		return 0, errNumber
	}
	return n, nil
}

func atoi32(v []byte) (int32, error) {
	n, err := atoi64(v)
	if err != nil || n != int64(int32(n)) {
		return 0, errNumber
	}
	return int32(n), nil
}
