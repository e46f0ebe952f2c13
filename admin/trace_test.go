package admin

import (
	"strings"
	"testing"
	"time"
)

func TestParseTrace(t *testing.T) {
	line := func(fields ...string) string { return strings.Join(fields, traceField) + traceRecord }
	body := line("Pub", "1700000000000", "DefaultRegion", "PG", "ORDERS", "ID1", "TagA", "k1 k2", "10.0.0.1:10911", "12", "3", "0", "OFF1", "true") +
		line("SubBefore", "1700000000100", "null", "CG", "REQ", "ID1", "2", "k1 k2") +
		line("SubAfter", "REQ", "ID1", "7", "false", "k1 k2", "4") +
		line("SubAfter", "REQ2", "ID1", "8", "true", "k1", "0", "1700000000200", "CG2") +
		line("EndTransaction", "1700000000050", "r", "PG", "ORDERS", "ID1", "", "k1", "10.0.0.1:10911", "2", "TX", "COMMIT_MESSAGE", "true") +
		line("Recall", "1700000000060", "r", "PG", "ORDERS", "ID1", "true") +
		line("Later", "whatever")
	rs, err := ParseTrace([]byte(body))
	if err != nil || len(rs) != 6 {
		t.Fatalf("%d records, %v", len(rs), err)
	}
	if r := rs[0]; r.Group != "PG" || r.Topic != "ORDERS" || r.OffsetID != "OFF1" || !*r.Success || *r.Cost != 3*time.Millisecond || r.BodySize != 12 || r.MsgType != "Normal_Msg" {
		t.Errorf("pub: %+v", r)
	}
	if r := rs[4]; r.TransactionID != "TX" || r.TransactionState != "COMMIT_MESSAGE" || !r.FromCheck || r.MsgType != "Trans_msg_Commit" {
		t.Errorf("end of transaction: %+v", r)
	}
	rs = joinTrace(rs)
	var order []string
	for _, r := range rs {
		order = append(order, r.Type)
	}
	if got := strings.Join(order, ","); got != "Pub,EndTransaction,Recall,SubBefore,SubAfter,SubAfter" {
		t.Errorf("order: %s", got)
	}
	if r := rs[4]; r.Group != "CG" || *r.Retries != 2 || *r.Success || *r.Code != 4 || r.Time.UnixMilli() != 1700000000107 {
		t.Errorf("joined: %+v", r)
	}

	// Older producers and the others beside a broken record.
	rs, err = ParseTrace([]byte(line("Pub", "1", "r", "g", "T", "ID", "", "", "h", "1", "1", "0", "true") + line("Pub", "1") + line("SubAfter", "R", "ID", "x", "true")))
	if len(rs) != 1 || !*rs[0].Success || err == nil || !strings.Contains(err.Error(), "has 2 fields") || !strings.Contains(err.Error(), "field 3 is no number") {
		t.Errorf("%+v %v", rs, err)
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add([]byte("Pub\x011\x01r\x01g\x01T\x01ID\x01\x01\x01h\x011\x011\x010\x01true\x02"))
	f.Add([]byte("SubBefore\x011\x01r\x01g\x01q\x01ID\x010\x01k\x02SubAfter\x01q\x01ID\x011\x01true\x01k\x010\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, _ := ParseTrace(b)
		joinTrace(rs)
	})
}
