package remoting

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func registration() *RegisterBrokerBody {
	a, b := NewTopicConfig("TopicA"), NewTopicConfig("%RETRY%g")
	a.Attributes = map[string]string{"message.type": "FIFO", "queue.type": "SimpleCQ"}
	b.Perm, b.ReadQueueNums, b.WriteQueueNums = 4, 1, 2
	return &RegisterBrokerBody{
		FilterServerList: []string{"10.0.0.1:1"},
		Topics: TopicConfigAndMappingTable{
			DataVersion:      DataVersion{Counter: 3, StateVersion: 1, Timestamp: 1795993445669},
			TopicConfigTable: map[string]TopicConfig{a.TopicName: a, b.TopicName: b},
			MappingInfoMap: map[string]TopicQueueMappingInfo{
				"Static": {BName: "b", CurrIDMap: map[int32]int32{0: 1}, Epoch: 9, Scope: "__global__", Topic: "Static", TotalQueues: 1},
			},
		},
	}
}

func TestRegistrationComesBackInEveryForm(t *testing.T) {
	for _, tc := range []struct {
		name       string
		compressed bool
		version    int32
		mapping    bool
	}{
		{"JSON", false, Version, true},
		{"compressed", true, Version, true},
		{"compressed, version not said", true, 0, true},
		{"compressed by 4.9", true, V4_9_4, false},
	} {
		body, err := EncodeRegisterBroker(registration(), tc.compressed, max(tc.version, V4_9_4))
		if tc.version == 0 {
			body, err = EncodeRegisterBroker(registration(), tc.compressed, Version)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRegisterBroker(body, false, tc.version)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		want := registration()
		if !tc.mapping {
			want.Topics.MappingInfoMap = nil
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// An old sender's body has no mapping section, a new one's has; whoever reads
// by its own version instead of the sender's fails on one of them.
func TestCompressedRegistrationIsReadByTheSendersVersion(t *testing.T) {
	old, err := EncodeRegisterBroker(registration(), true, V4_9_4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeRegisterBroker(old, false, V4_9_4); err != nil {
		t.Errorf("old body: %v", err)
	}
	now, err := EncodeRegisterBroker(registration(), true, V5_0_0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeRegisterBroker(now, false, V5_0_0)
	if err != nil || len(got.Topics.MappingInfoMap) != 1 {
		t.Errorf("new body: %v, %v", got, err)
	}
}

func TestRegistrationsOfOldBrokers(t *testing.T) {
	body := []byte(`{"dataVersion":{"counter":1,"timestamp":5},"topicConfigTable":{"T":{"perm":6,"readQueueNums":4,"topicName":"T","writeQueueNums":4}}}`)
	got, err := DecodeRegisterBroker(body, false, V3_0_11-1)
	if err != nil {
		t.Fatal(err)
	}
	if got.Topics.TopicConfigTable["T"].ReadQueueNums != 4 || got.Topics.DataVersion.Counter != 1 {
		t.Errorf("read %+v", got)
	}
	if got, err := DecodeRegisterBroker(nil, false, Version); err != nil || len(got.Topics.TopicConfigTable) != 0 {
		t.Errorf("empty body: %v, %v", got, err)
	}
}

func deflate(t *testing.T, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCompressedFlagWithoutCompressionIsAnError(t *testing.T) {
	if got, err := DecodeRegisterBroker([]byte(`{"filterServerList":[]}`), true, Version); err == nil {
		t.Errorf("read %+v", got)
	}
}

func TestBrokenRegistrationsAreErrors(t *testing.T) {
	good, err := EncodeRegisterBroker(registration(), true, Version)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"no JSON":          []byte("registration"),
		"half a JSON":      []byte(`{"filterServerList":[`),
		"half a stream":    good[:len(good)/2],
		"empty stream":     deflate(t, nil),
		"topic count":      deflate(t, []byte("\x00\x00\x00\x00\x7f\xff\xff\xff")),
		"negative count":   deflate(t, []byte("\x00\x00\x00\x00\xff\xff\xff\xff")),
		"negative length":  deflate(t, []byte("\xff\xff\xff\xff")),
		"short topic":      deflate(t, []byte("\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x03T 4")),
		"queues no number": deflate(t, []byte("\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0dT x 4 6 MULTI")),
	} {
		if got, err := DecodeRegisterBroker(body, false, Version); err == nil {
			t.Errorf("%s was read as %+v", name, got)
		} else if !strings.HasPrefix(err.Error(), "cannot read registration: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	bomb := deflate(t, make([]byte, MaxRegisterBody+1))
	if _, err := DecodeRegisterBroker(bomb, false, Version); !errors.Is(err, ErrRegisterTooLarge) {
		t.Errorf("%d bytes that inflate beyond the limit: %v", len(bomb), err)
	}
}

func TestDataVersionOrder(t *testing.T) {
	now := time.UnixMilli(1000)
	v := NewDataVersion(now)
	next := v.NextVersion(now)
	if v.Compare(next) >= 0 || next.Compare(v) <= 0 || v.Compare(v) != 0 {
		t.Errorf("%+v and its next %+v", v, next)
	}
	if s := v.NextState(1, now); s.Compare(DataVersion{Counter: 100}) <= 0 {
		t.Error("the state version counts first")
	}
	if (DataVersion{Timestamp: 2}).Compare(DataVersion{Timestamp: 1}) <= 0 {
		t.Error("the time counts last")
	}
}

func inflateAll(body []byte) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
