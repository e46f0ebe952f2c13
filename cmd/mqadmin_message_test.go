package cmd

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/testkit"
	"mqx/message"
	"mqx/remoting"
)

// goldenMessage is the message that the golden outputs of queryMsgById and its like show.
func goldenMessage() *client.Received {
	at := func(text string) int64 {
		t, err := time.ParseInLocation("2006-01-02 15:04:05.000", text, time.UTC)
		if err != nil {
			panic(err)
		}
		return t.UnixMilli()
	}
	return client.NewReceived(message.Received{
		Message: message.Message{Topic: "WAdmA1", Body: []byte("x"), Properties: map[string]string{
			"MSG_REGION": "DefaultRegion", "UNIQ_KEY": "C0000202270B4E0E2F2A9530AA7E0022", "CLUSTER": "WireCluster", "TAGS": "TagC", "color": "red",
			"KEYS": "admkey shared", "WAIT": "true", "TRACE_ON": "true",
		}},
		QueueID: 1, QueueOffset: 6, PhysicalOffset: 16159, BornTimestamp: at("2026-11-29 23:16:34.558"), StoreTimestamp: at("2026-11-29 23:16:34.576"),
		BornHost: netip.MustParseAddrPort("127.0.0.1:39040"), StoreHost: netip.MustParseAddrPort("127.0.0.2:31111"),
	}, remoting.MessageQueue{Topic: "WAdmA1", BrokerName: "broker-w", QueueID: 1})
}

// What Apache's tool printed, in its columns (golden 016, 018, 022, 024).
func TestApacheMessageText(t *testing.T) {
	committed := int64(7)
	tracks := []admin.Track{
		{Group: "CG_adm_bc1", State: admin.TrackBroadcast, Online: true, Type: remoting.ConsumePassively, Model: remoting.Broadcasting},
		{Group: "CG_adm1", State: admin.TrackFiltered, Online: true, Type: remoting.ConsumePassively, Model: remoting.Clustering, Committed: &committed},
	}
	for name, byID := range map[string]bool{"016_queryMsgById": true, "017_queryMsgById_uniq": true, "018_queryMsgByUniqueKey": false, "022_queryMsgByOffset": true} {
		_, want := testkit.GoldenMqadmin(t, name)
		var out bytes.Buffer
		a := &app{Streams: Streams{Out: &out}}
		m := goldenMessage()
		if name == "022_queryMsgByOffset" {
			withRange(m, client.QueueRange{Start: 0, End: 10})
		}
		if err := a.printApacheMessage(m, byID, false, "/tmp/rocketmq/msgbodys/"+m.MessageID); err != nil {
			t.Fatal(err)
		}
		end := ""
		if byID {
			end = "\n"
		}
		out.WriteString("\n\n")
		for i := range tracks {
			out.WriteString(apacheTrack(&tracks[i], m.QueueOffset) + end)
		}
		if out.String() != string(want) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, out.String(), want)
		}
	}

	_, text := testkit.GoldenMqadmin(t, "024_printMsg")
	line := strings.Split(string(text), "\n")[1]
	m := client.NewReceived(message.Received{
		Message: message.Message{Topic: "WAdmB1", Body: []byte("fill 11"), Properties: map[string]string{
			"MSG_REGION": "DefaultRegion", "UNIQ_KEY": "C0000202270B4E0E2F2A9530A77C0019", "CLUSTER": "WireCluster", "TAGS": "TagB", "color": "blue",
			"KEYS": "f1", "WAIT": "true", "a": "1", "TRACE_ON": "true",
		}},
		QueueID: 1, PhysicalOffset: 13931, Size: 248, BodyCRC: 1477274540, BornTimestamp: 1795994193788, StoreTimestamp: 1795994193802,
		BornHost: netip.MustParseAddrPort("127.0.0.1:39012"), StoreHost: netip.MustParseAddrPort("127.0.0.2:31111"),
	}, remoting.MessageQueue{Topic: "WAdmB1", BrokerName: "broker-w", QueueID: 1})
	withRange(m, client.QueueRange{End: 5})
	var out bytes.Buffer
	if err := (&app{Streams: Streams{Out: &out}}).printJavaMessage(m, true); err != nil || out.String() != line+"\n" {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), line)
	}
}

func TestApacheTrackNames(t *testing.T) {
	at := func(n int64) *int64 { return &n }
	push, group := remoting.ConsumePassively, remoting.Clustering
	for want, track := range map[string]admin.Track{
		"CONSUMED":              {Online: true, Type: push, Model: group, Committed: at(8), State: admin.TrackConsumed},
		"NOT_CONSUME_YET":       {Online: true, Type: push, Model: group, Committed: at(7), State: admin.TrackFiltered},
		"CONSUMED_BUT_FILTERED": {Online: true, Type: push, Model: group, Committed: at(8), State: admin.TrackFiltered},
		"PULL":                  {Online: true, Type: remoting.ConsumeActively, Committed: at(8), State: admin.TrackConsumed},
		"CONSUME_BROADCASTING":  {Online: true, Type: push, Model: remoting.Broadcasting},
		"NOT_ONLINE":            {Committed: at(8), State: admin.TrackConsumed},
		"UNKNOWN":               {Online: true, Type: remoting.ConsumePop, Committed: at(8), State: admin.TrackPop},
	} {
		if got := apacheTrack(&track, 7); !strings.Contains(got, "trackType="+want+",") {
			t.Errorf("%s: %s", want, got)
		}
	}
}

func TestApacheWhen(t *testing.T) {
	for text, want := range map[string]int64{"1795994193788": 1795994193788, "1970-01-02#00:00:00:005": time.Date(1970, 1, 2, 0, 0, 0, 5e6, time.Local).UnixMilli()} {
		if got, err := apacheWhen("b", text); err != nil || got.UnixMilli() != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-01-02", "12x"} {
		if _, err := apacheWhen("b", text); err == nil {
			t.Errorf("%q is a time", text)
		}
	}
}
