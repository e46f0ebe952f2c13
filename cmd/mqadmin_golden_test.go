package cmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"mqx/internal/testkit"
	"mqx/remoting"
	remoteserver "mqx/remoting/server"
)

// The addresses of the recording. Those of the servers here have as many characters.
const (
	goldenNS     = "127.0.0.2:30076"
	goldenBroker = "127.0.0.2:31111"
)

// replayed is one request of the recording and what was answered.
type replayed struct {
	listener string
	fields   map[string]string
	answer   testkit.WireFrame
	section  string
}

// recording is the conversation of mqadmin with Apache's servers, by request code.
func recording(t *testing.T) map[int32][]replayed {
	t.Helper()
	out := map[int32][]replayed{}
	type call struct{ conn, opaque int }
	open := map[call]testkit.WireFrame{}
	section := ""
	sections := map[call]string{}
	for _, f := range testkit.GoldenWire(t, "mqadmin_JSON") {
		switch {
		case f.Kind == testkit.WireMark && f.Remark != nil:
			section = strings.TrimPrefix(*f.Remark, "mqadmin ")
		case f.Kind != testkit.WireFrameKind:
		case f.Type == "request" && f.Dir == "c2s":
			key := call{f.Conn, int(f.Opaque)}
			open[key], sections[key] = f, section
		case f.Type == "response" && f.Dir == "s2c":
			key := call{f.Conn, int(f.Opaque)}
			req, ok := open[key]
			if !ok {
				continue
			}
			delete(open, key)
			out[req.Code] = append(out[req.Code], replayed{f.Listener, req.ExtFields, f, sections[key]})
		}
	}
	return out
}

// replayed answers are made by servers of their own: what a test tells them is guarded.
var replayMu sync.Mutex

func tell(to *string, value string) {
	replayMu.Lock()
	defer replayMu.Unlock()
	*to = value
}

// replay starts a server that answers as the recorded one at a listener did.
func replay(t *testing.T, listener string, all map[int32][]replayed, section *string, swap func([]byte) []byte) (addr string) {
	t.Helper()
	class := remoteserver.NewClass(remoteserver.ClassConfig{Name: "replay", Workers: 4, Queue: 1000})
	m := remoteserver.NewMux()
	for code := range all {
		m.Handle(code, class, func(r *remoteserver.Request) {
			replayMu.Lock()
			defer replayMu.Unlock()
			found := choose(all[code], listener, *section, &r.Command)
			if found == nil {
				r.Reply(remoting.RespSystemError, "not recorded")
				return
			}
			resp := &remoting.Command{}
			if err := resp.DecodeReply(found.answer.Raw); err != nil {
				r.Reply(remoting.RespSystemError, err.Error())
				return
			}
			resp.Opaque, resp.Body = r.Opaque, swap(bytes.Clone(resp.Body))
			r.ReplyWith(resp)
		})
	}
	s, err := remoteserver.New(remoteserver.Config{Addr: "127.0.0.1:0", Loops: 1, Logger: slog.New(slog.DiscardHandler)}, m)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = class.Run(context.Background()); close(ended) }()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		class.Close()
		<-ended
	})
	return s.Addr().String()
}

// choose finds the recorded answer to a request: with the same fields, as far as the
// recorded tool sent them, of the command's own section first.
func choose(list []replayed, listener, section string, req *remoting.Command) *replayed {
	var best *replayed
	score := -1
	for i := range list {
		r := &list[i]
		if !strings.HasPrefix(r.listener, listener) {
			continue
		}
		n := 0
		for _, name := range []string{"topic", "consumerGroup", "producerGroup", "group", "clientId", "statsName", "statsKey", "queueId", "index", "count"} {
			want, sent := r.fields[name]
			if got := req.Fields.String(name); sent && got != want {
				n = -1
				break
			} else if sent {
				n += 2
			}
		}
		if n < 0 {
			continue
		}
		if r.section == section {
			n++
		}
		if n > score {
			best, score = r, n
		}
	}
	return best
}

// goldenRead is a recorded command and how its text is compared.
type goldenRead struct {
	name string
	// mend makes the recorded text and ours comparable, where Apache's tool prints what
	// depends on the moment, on the order of a hash table, or what is a fault of it.
	mend func(string) string
	exit Exit
}

var goldenReads = []goldenRead{
	{name: "003_clusterList", mend: hours},
	{name: "004_clusterList_more"},
	{name: "005_clusterList_c", mend: hours},
	{name: "006_topicList"},
	{name: "008_topicRoute"},
	{name: "009_topicRoute_list"},
	{name: "011_topicStatus", mend: putRate},
	{name: "012_topicStatus_b", mend: putRate},
	{name: "013_topicClusterList"},
	{name: "014_brokerStatus"},
	{name: "015_brokerStatus_c"},
	{name: "028_queryCq"},
	{name: "029_queryCq_group", mend: oneLineCodes},
	{name: "031_producerConnection"},
	{name: "032_consumerConnection"},
	{name: "033_consumerConnection_b"},
	{name: "036_consumerProgress_g"},
	{name: "040_consumerStatus", mend: reportFile},
	{name: "041_producer"},
	{name: "042_brokerConsumeStats"},
	{name: "044_statsAll"},
	{name: "045_statsAll_t"},
	{name: "046_allocateMQ", mend: shares},
	{name: "047_getNamesrvConfig"},
	{name: "048_getBrokerConfig"},
	{name: "049_getBrokerConfig_c"},
	{name: "050_getConsumerConfig"},
	{name: "055_haStatus"},
	{name: "056_haStatus_c"},
	{name: "057_getColdDataFlowCtrInfo"},
	{name: "061_getBrokerLiteInfo"},
}

// hours takes out the age of the oldest message, which grows.
func hours(text string) string {
	return regexp.MustCompile(`ms\)  \d+-|\d+\.\d\d +0\.`).ReplaceAllString(text, "#")
}

// reportFile takes out the time in the name of a file.
func reportFile(text string) string { return regexp.MustCompile(`\d{13}/`).ReplaceAllString(text, "/") }

// putRate takes out the rate of a topic: Apache's tool loses it when it puts the
// answers of brokers together, and always prints 0.0.
func putRate(text string) string {
	return regexp.MustCompile(`Topic Put TPS: .*`).ReplaceAllString(text, "Topic Put TPS: #")
}

// oneLineCodes puts the numbers of a list on one line.
func oneLineCodes(text string) string {
	return regexp.MustCompile(`(?s)"codeSet":\[.*?\]`).ReplaceAllStringFunc(text, func(m string) string { return strings.Join(strings.Fields(m), "") })
}

// shares counts the queues of each client: Apache's tool shares them out in the order
// of a hash table, which no client has.
func shares(text string) string {
	var v struct {
		Result map[string][]remoting.MessageQueue `json:"result"`
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	var all []string
	for _, id := range slices.Sorted(maps.Keys(v.Result)) {
		all = append(all, id+" "+strings.Repeat("x", len(v.Result[id])))
	}
	return strings.Join(all, "\n")
}

// The columns of Apache's mqadmin, with the very answers that it printed them from.
func TestMqadminPrintsWhatApachePrinted(t *testing.T) {
	all := recording(t)
	section := ""
	var ns, broker string
	swap := func(b []byte) []byte {
		b = bytes.ReplaceAll(b, []byte(goldenNS), []byte(ns))
		return bytes.ReplaceAll(b, []byte(goldenBroker), []byte(broker))
	}
	tell(&ns, replay(t, "namesrv", all, &section, swap))
	tell(&broker, replay(t, "broker", all, &section, swap))
	t.Chdir(t.TempDir())
	for _, g := range goldenReads {
		t.Run(g.name, func(t *testing.T) {
			args, want := testkit.GoldenMqadmin(t, g.name)
			tell(&section, args)
			got, code, errs := runGolden(t, strings.Fields(string(swap([]byte(args)))))
			if code != g.exit {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			got = strings.ReplaceAll(strings.ReplaceAll(got, broker, goldenBroker), ns, goldenNS)
			wanted := string(want)
			if g.mend != nil {
				got, wanted = g.mend(got), g.mend(wanted)
			}
			if diff := gocmp.Diff(sortedLines(wanted), sortedLines(got)); diff != "" {
				t.Errorf("-Apache +mqx:\n%s", diff)
			}
		})
	}
}

func runGolden(t *testing.T, args []string) (out string, code Exit, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Execute(t.Context(), append([]string{"mqadmin"}, args...), Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return stdout.String(), code, stderr.String()
}

// sortedLines are the lines of a text in order, without blanks at their ends: Apache's
// tool prints tables in the order of hash tables.
func sortedLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \r\n"); line != "" {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// The files that Apache's exports wrote: the same members, the same values but for the
// figures of the moment.
func TestMqadminExportsWhatApacheExported(t *testing.T) {
	all := recording(t)
	section := ""
	var ns, broker string
	swap := func(b []byte) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte(goldenNS), []byte(ns)), []byte(goldenBroker), []byte(broker))
	}
	tell(&ns, replay(t, "namesrv", all, &section, swap))
	tell(&broker, replay(t, "broker", all, &section, swap))
	for _, name := range []string{"configs", "metrics"} {
		t.Run(name, func(t *testing.T) {
			command := map[string]string{"configs": "exportConfigs", "metrics": "exportMetrics"}[name]
			tell(&section, command+" -n "+goldenNS+" -c WireCluster -f /srv/golden/run/wire-j1b")
			dir := t.TempDir()
			out, code, errs := runGolden(t, []string{command, "-n", ns, "-c", "WireCluster", "-f", dir})
			path := filepath.Join(dir, name+".json")
			if code != ExitOK || out != "export "+path+" success\n" {
				t.Fatalf("exit code %d: %s%s", code, out, errs)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := cmp.Or(json.Unmarshal(text, &got), json.Unmarshal(testkit.GoldenFile(t, "mqadmin/exports/"+name+".json"), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("-Apache +mqx:\n%s", diff)
			}
		})
	}
}
