package testkit

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"sync"
	"testing"
)

// Manifest says what is in a golden store, as Apache's own classes read it. The meaning of each field is in
// golden/README.md. A manifest is read once and shared: do not change it.
type Manifest struct {
	Variant      string            `json:"variant"`
	Description  string            `json:"description"`
	ProducedBy   string            `json:"producedBy"`
	Set          string            `json:"set"`
	BrokerConfig map[string]string `json:"brokerConfig"`
	Steps        []string          `json:"steps"`
	Ops          []Op              `json:"ops"`
	Archive      string            `json:"archive"`
	ArchiveRoot  string            `json:"archiveRoot"`
	Files        []File            `json:"files"` // of the archive

	ClientView *ClientView `json:"clientView"` // nil where no client read the store
	StoreView  *StoreView  `json:"storeView"`  // nil for damage variants: see BeforeDamage and Recovery

	// Variant roll: the oldest commit log files were deleted after ClientView was taken.
	ClientViewAfterDelete *ClientView       `json:"clientViewAfterDelete"`
	OpsAfterDelete        []json.RawMessage `json:"opsAfterDelete"`

	// Damage variants.
	Damage       string        `json:"damage"`
	BaseKind     string        `json:"baseKind"` // "crash" or "clean"
	BeforeDamage *BeforeDamage `json:"beforeDamage"`
	Recovery     *Recovery     `json:"recovery"`

	// Variant crash_midwrite: the sends that the producer got an answer for before the broker was killed.
	Acknowledged []Acknowledged `json:"acknowledged"`
}

// Op is what an Apache client did and what it was answered. Which fields are set depends on Op; Extra has all of them.
type Op struct {
	Op             string `json:"op"`
	Topic          string `json:"topic"`
	Group          string `json:"group"`
	QueueID        int32  `json:"queueId"`
	QueueOffset    int64  `json:"queueOffset"`
	MsgID          string `json:"msgId"` // several joined by commas for a batch
	OffsetMsgID    string `json:"offsetMsgId"`
	Status         string `json:"status"`
	TransactionID  string `json:"transactionId"`
	RecallHandle   string `json:"recallHandle"`
	Keys           string `json:"keys"`
	Tags           string `json:"tags"`
	Error          string `json:"error"`
	Result         string `json:"result"`
	Action         string `json:"action"`
	PopCK          string `json:"popCk"`
	FirstPopTime   string `json:"firstPopTime"`
	CheckTimes     string `json:"checkTimes"`
	MaxNum         int    `json:"maxNum"`
	Invisible      int64  `json:"invisible"` // ms
	Order          bool   `json:"order"`
	Found          int    `json:"found"`
	RestNum        int64  `json:"restNum"`
	PopTime        int64  `json:"popTime"`
	ReconsumeTimes int32  `json:"reconsumeTimes"`
	Count          int    `json:"count"`
	DelayLevel     int    `json:"delayLevel"`
	GroupLength    int    `json:"groupLength"`
	PopRetryLength int    `json:"popRetryTopicLength"`
	Extra          RawOp  `json:"-"`
}

// RawOp is an Op with every member as it stands in the manifest.
type RawOp map[string]json.RawMessage

// UnmarshalJSON fills the fields and Extra.
func (o *Op) UnmarshalJSON(b []byte) error {
	type plain Op
	if err := json.Unmarshal(b, (*plain)(o)); err != nil {
		return err
	}
	return json.Unmarshal(b, &o.Extra)
}

// Acknowledged is a send that was answered before the broker was killed.
type Acknowledged struct {
	I           int    `json:"i"`
	QueueID     int32  `json:"queueId"`
	QueueOffset int64  `json:"queueOffset"`
	MsgID       string `json:"msgId"`
	OffsetMsgID string `json:"offsetMsgId"`
}

// File is one file of a store directory.
type File struct {
	Path   string `json:"path"` // below the store's root, with slashes
	Size   int64  `json:"size"`
	Mtime  int64  `json:"mtime"` // ms
	SHA256 string `json:"sha256"`
}

// BeforeDamage is what Apache read before a store was damaged.
type BeforeDamage struct {
	ClientView         *ClientView    `json:"clientView"`
	CommitLogMaxOffset int64          `json:"commitLogMaxOffset"`
	RecordCount        int            `json:"recordCount"`
	Records            []LogRecord    `json:"records"`
	ConsumeQueues      []ConsumeQueue `json:"consumeQueues"`
}

// Recovery is what an Apache broker made of a damaged store.
type Recovery struct {
	BrokerStarted          bool            `json:"brokerStarted"`
	StartArgs              string          `json:"startArgs"`
	StartError             string          `json:"startError"`
	ExitCode               *int            `json:"exitCode"`
	Summary                RecoverySummary `json:"summary"`
	ClientView             *ClientView     `json:"clientView"`
	StoreViewAfterRecovery *StoreView      `json:"storeViewAfterRecovery"`
	FilesAfterRecovery     []File          `json:"filesAfterRecovery"`
	StoreLogExcerpt        []string        `json:"storeLogExcerpt"`
}

// RecoverySummary is the short form of a Recovery. Numbers are nil when the broker did not start.
type RecoverySummary struct {
	BrokerStarted      bool           `json:"brokerStarted"`
	CommitLogMinOffset *json.Number   `json:"commitLogMinOffset"`
	CommitLogMaxOffset *json.Number   `json:"commitLogMaxOffset"`
	MessagesPulled     *int           `json:"messagesPulled"`
	RecordsInCommitLog *int           `json:"recordsInCommitLog"`
	Queues             []QueueSummary `json:"queues"`
	IndexFiles         []IndexFile    `json:"indexFiles"`

	// Variant crash_midwrite only.
	AcknowledgedSends int              `json:"acknowledgedSends"`
	MaxOffsets        map[string]int64 `json:"maxOffsets"`
	WalkStop          string           `json:"walkStop"`
}

// QueueSummary is what was left of a queue.
type QueueSummary struct {
	Topic     string  `json:"topic"`
	QueueID   int32   `json:"queueId"`
	MinOffset int64   `json:"minOffset"`
	MaxOffset int64   `json:"maxOffset"`
	Pulled    int     `json:"pulled"`
	Note      *string `json:"note"`
}

var manifests sync.Map // variant -> *Manifest

// GoldenManifest returns the manifest of a golden store.
func GoldenManifest(t testing.TB, variant string) *Manifest {
	t.Helper()
	if m, ok := manifests.Load(variant); ok {
		return m.(*Manifest)
	}
	m := &Manifest{}
	r, err := gzip.NewReader(bytes.NewReader(read(t, "store", variant+".manifest.json.gz")))
	if err != nil {
		t.Fatalf("golden manifest %s: %v", variant, err)
	}
	if err := json.NewDecoder(r).Decode(m); err != nil {
		t.Fatalf("golden manifest %s: %v", variant, err)
	}
	if m.Variant != variant {
		t.Fatalf("golden manifest %s: names variant %q", variant, m.Variant)
	}
	manifests.Store(variant, m)
	return m
}
