package retry

import (
	"math"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mqx/message"
)

func TestDecide(t *testing.T) {
	tests := []struct {
		name               string
		times, most, level int32
		want               Decision
	}{
		{"first attempt: 10 s", 0, 16, 0, Decision{Level: 3}},
		{"the last one: 2 h", 15, 16, 0, Decision{Level: 18}},
		{"used up", 16, 16, 0, Decision{DLQ: true}},
		{"used up, with a level", 16, 16, 5, Decision{DLQ: true}},
		{"the consumer's own level", 3, 16, 5, Decision{Level: 5}},
		{"no more attempts", 0, 16, -1, Decision{DLQ: true}},
		{"no attempt at all", 0, 0, 0, Decision{DLQ: true}},
		{"a negative maximum", 0, -1, 0, Decision{DLQ: true}},
		{"a count that would overflow", math.MaxInt32 - 1, math.MaxInt32, 0, Decision{Level: math.MaxInt32 + 2}},
	}
	for _, tt := range tests {
		if got := Decide(tt.times, tt.most, tt.level); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	for _, tt := range []struct {
		times, most int32
		ordered     bool
		want        bool
	}{{16, 16, false, false}, {17, 16, false, true}, {0, 16, true, true}, {0, 0, false, false}, {1, 0, false, true}} {
		if got := SendToDLQ(tt.times, tt.most, tt.ordered); got != tt.want {
			t.Errorf("sent: %+v", tt)
		}
	}
}

func TestGroupOf(t *testing.T) {
	for topic, want := range map[string]string{
		"%RETRY%G": "G", "%RETRY%G+T": "G", "%RETRY%G_T": "G_T", "%RETRY%G+T+U": "G+T+U", "%RETRY%G+": "G+", "%RETRY%": "", "%RETRY%ns%G": "ns%G",
	} {
		if got := GroupOf(topic); got != want {
			t.Errorf("%s: %q, want %q", topic, got, want)
		}
	}
}

// What a message says after any number of attempts: where it came from first,
// its first id, the attempts, and nothing lost of its own.
func TestNextModel(t *testing.T) {
	host4, host6 := netip.MustParseAddrPort("192.0.2.1:10911"), netip.MustParseAddrPort("[2001:db8::1]:10911")
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.SampledFrom([]netip.AddrPort{host4, host6})
		own := rapid.MapOf(rapid.StringMatching("[a-z]{1,8}"), rapid.StringMatching("[A-Z0-9]{1,8}")).Draw(t, "own")
		first := message.Record{
			Topic: []byte("T"), QueueID: 3, Flag: 9, SysFlag: message.CompressionZlib.SysFlag(), BornTimestamp: 77,
			BornHost: host.Draw(t, "born"), StoreHost: host.Draw(t, "stored"), Body: rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "body"),
			Properties: message.FormatProperties(own), PhysicalOffset: 4711,
		}
		wantID := string(message.AppendOffsetID(nil, first.StoreHost, 4711))
		rec := message.View(first.Append(nil, false))
		message.PatchOffsets(rec, 0, 4711, 5)
		n := rapid.IntRange(1, 20).Draw(t, "attempts")
		for i := range n {
			d := Decide(rec.ReconsumeTimes(), 16, rapid.SampledFrom([]int32{0, 2, -1}).Draw(t, "level"))
			here := host.Draw(t, "here")
			next := Next(rec, d, "%RETRY%G", 1, here)
			if int(next.ReconsumeTimes) != i+1 || next.StoreHost != here || next.BornHost != first.BornHost {
				t.Fatalf("%+v", next)
			}
			b := next.Append(nil, false)
			message.PatchOffsets(b, 0, int64(i), 5)
			var err error
			if rec, err = message.ParseView(b, message.DecodeOptions{VerifyBodyCRC: true}); err != nil {
				t.Fatal(err)
			}
			if rec.StoreHost() != here || rec.BornHost() != first.BornHost {
				t.Fatalf("hosts %v %v, want %v %v", rec.StoreHost(), rec.BornHost(), here, first.BornHost)
			}
		}
		got := message.ParseProperties(rec.Properties())
		if got["RETRY_TOPIC"] != "T" || got["ORIGIN_MESSAGE_ID"] != wantID || got["WAIT"] != "false" || got["DELAY"] == "" {
			t.Fatalf("%v", got)
		}
		for _, name := range []string{"RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "WAIT", "DELAY"} {
			delete(got, name)
		}
		if d := cmp.Diff(own, got); d != "" {
			t.Fatal(d)
		}
		if string(rec.Body()) != string(first.Body) || rec.Flag() != 9 || rec.BornTimestamp() != 77 {
			t.Fatal("the message itself has changed")
		}
	})
}
