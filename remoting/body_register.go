package remoting

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zlib"

	"mqx/internal/fastjson"
)

// RegisterBrokerBody is the body of REGISTER_BROKER.
type RegisterBrokerBody struct {
	FilterServerList []string                   `json:"filterServerList"`
	Topics           TopicConfigAndMappingTable `json:"topicConfigSerializeWrapper"`
}

// MaxRegisterBody bounds the inflated form of a compressed registration in
// bytes.
const MaxRegisterBody = 64 << 20

// ErrRegisterTooLarge is a compressed registration beyond MaxRegisterBody.
var ErrRegisterTooLarge = errors.New("inflated registration exceeds the limit")

// RegisterBodyCRC returns the checksum of a registration's body as it is sent,
// for the header field bodyCrc32.
func RegisterBodyCRC(body []byte) int32 { return int32(crc32.ChecksumIEEE(body) & 0x7fffffff) }

// EncodeRegisterBroker writes a registration as JSON, or in the compressed
// form (docs/wire/bodies.md). version is that of the sender: below V5_0_0 the
// compressed form has no mapping section.
func EncodeRegisterBroker(b *RegisterBrokerBody, compressed bool, version int32) ([]byte, error) {
	if !compressed {
		body, err := fastjson.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("cannot write registration: %w", err)
		}
		return body, nil
	}
	plain, err := appendRegister(nil, b, version)
	if err != nil {
		return nil, fmt.Errorf("cannot write registration: %w", err)
	}
	var out bytes.Buffer
	w, err := zlib.NewWriterLevel(&out, zlib.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("cannot compress registration: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("cannot compress registration: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot compress registration: %w", err)
	}
	return out.Bytes(), nil
}

func appendRegister(dst []byte, b *RegisterBrokerBody, version int32) ([]byte, error) {
	dst, err := appendBlockJSON(dst, b.Topics.DataVersion)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b.Topics.TopicConfigTable)))
	for _, name := range sortedKeys(b.Topics.TopicConfigTable) {
		t := b.Topics.TopicConfigTable[name]
		attributes, err := fastjson.Marshal(t.Attributes)
		if err != nil {
			return nil, err
		}
		dst = appendBlock(dst, []byte(fmt.Sprintf("%s %d %d %d %s %s",
			t.TopicName, t.ReadQueueNums, t.WriteQueueNums, t.Perm, t.TopicFilterType, attributes)))
	}
	if dst, err = appendBlockJSON(dst, b.FilterServerList); err != nil {
		return nil, err
	}
	if version < V5_0_0 {
		return dst, nil
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b.Topics.MappingInfoMap)))
	for _, name := range sortedKeys(b.Topics.MappingInfoMap) {
		if dst, err = appendBlockJSON(dst, b.Topics.MappingInfoMap[name]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func appendBlock(dst, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), b...)
}

func appendBlockJSON(dst []byte, v any) ([]byte, error) {
	b, err := fastjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	return appendBlock(dst, b), nil
}

// DecodeRegisterBroker reads a registration. compressed is the request's
// header field, version that of the sender; 0 counts as the current one.
// Senders below V3_0_11 send the topics alone. An empty body is a registration
// without topics.
//
// A body that starts a zlib stream is taken as compressed in any case, since
// Apache 5.5.0 sends compressed bodies under compressed=false.
func DecodeRegisterBroker(body []byte, compressed bool, version int32) (*RegisterBrokerBody, error) {
	b := &RegisterBrokerBody{}
	if len(body) == 0 {
		return b, nil
	}
	if version == 0 {
		version = Version
	}
	var err error
	switch {
	case compressed || isZlib(body):
		err = decodeCompressedRegister(body, version, b)
	case version < V3_0_11:
		err = fastjson.Unmarshal(body, &b.Topics)
	default:
		err = fastjson.Unmarshal(body, b)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read registration: %w", err)
	}
	return b, nil
}

// isZlib reports whether b starts a zlib stream; no JSON text does.
func isZlib(b []byte) bool {
	return len(b) >= 2 && b[0]&0x0f == 8 && binary.BigEndian.Uint16(b)%31 == 0
}

func decodeCompressedRegister(body []byte, version int32, b *RegisterBrokerBody) error {
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return err
	}
	plain, err := io.ReadAll(io.LimitReader(z, MaxRegisterBody+1))
	if err != nil {
		return err
	}
	if len(plain) > MaxRegisterBody {
		return ErrRegisterTooLarge
	}
	r := blockReader{b: plain}
	if err := r.json("data version", &b.Topics.DataVersion); err != nil {
		return err
	}
	topics, err := r.count("topic count")
	if err != nil {
		return err
	}
	b.Topics.TopicConfigTable = make(map[string]TopicConfig, min(topics, 1024))
	for range topics {
		text, err := r.block("topic")
		if err != nil {
			return err
		}
		t, err := parseRegisteredTopic(string(text))
		if err != nil {
			return err
		}
		b.Topics.TopicConfigTable[t.TopicName] = t
	}
	if err := r.json("filter servers", &b.FilterServerList); err != nil {
		return err
	}
	b.Topics.MappingInfoMap = map[string]TopicQueueMappingInfo{}
	if version < V5_0_0 || len(r.b) == r.at {
		return nil
	}
	return r.mappings(b.Topics.MappingInfoMap)
}

func (r *blockReader) mappings(m map[string]TopicQueueMappingInfo) error {
	n, err := r.count("mapping count")
	if err != nil {
		return err
	}
	for range n {
		var info TopicQueueMappingInfo
		if err := r.json("mapping", &info); err != nil {
			return err
		}
		m[info.Topic] = info
	}
	return nil
}

// parseRegisteredTopic reads "name readQueues writeQueues perm filterType
// {attributes}"; the attributes may be absent.
func parseRegisteredTopic(text string) (TopicConfig, error) {
	parts := strings.SplitN(text, " ", 6)
	if len(parts) < 5 {
		return TopicConfig{}, fmt.Errorf("topic %q has %d parts, not 5 or 6", text, len(parts))
	}
	t := NewTopicConfig(parts[0])
	for i, dst := range []*int32{&t.ReadQueueNums, &t.WriteQueueNums, &t.Perm} {
		n, err := strconv.ParseInt(parts[i+1], 10, 32)
		if err != nil {
			return TopicConfig{}, fmt.Errorf("topic %q: %w", text, err)
		}
		*dst = int32(n)
	}
	t.TopicFilterType = parts[4]
	if len(parts) == 6 && parts[5] != "" {
		if err := fastjson.Unmarshal([]byte(parts[5]), &t.Attributes); err != nil {
			return TopicConfig{}, fmt.Errorf("attributes of topic %q: %w", parts[0], err)
		}
	}
	return t, nil
}

// blockReader reads the length-prefixed blocks of an inflated registration.
type blockReader struct {
	b  []byte
	at int
}

func (r *blockReader) count(what string) (int, error) {
	if len(r.b)-r.at < 4 {
		return 0, fmt.Errorf("%s at byte %d: data ends early", what, r.at)
	}
	n := int32(binary.BigEndian.Uint32(r.b[r.at:]))
	// A block takes its length at least.
	if n < 0 || int(n) > (len(r.b)-r.at-4)/4 {
		return 0, fmt.Errorf("%s at byte %d: %d does not fit the data", what, r.at, n)
	}
	r.at += 4
	return int(n), nil
}

func (r *blockReader) block(what string) ([]byte, error) {
	b, end, ok := binaryBytes(r.b, r.at)
	if !ok {
		return nil, fmt.Errorf("%s at byte %d: data ends early", what, r.at)
	}
	r.at = end
	return b, nil
}

func (r *blockReader) json(what string, v any) error {
	at := r.at
	b, err := r.block(what)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return nil
	}
	if err := fastjson.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s at byte %d: %w", what, at, err)
	}
	return nil
}
