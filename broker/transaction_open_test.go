package broker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mqx/internal/testkit"
	"mqx/message"
)

// openFile is the file transactionMetrics.
type openFile struct {
	DataVersion struct {
		Counter, Timestamp int64
	}
	TransactionCount map[string]struct{ Count, TimeStamp int64 }
}

func readOpen(t *testing.T, root string) (f openFile) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "config", "transactionMetrics"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return f
}

// The file transactionMetrics counts the open transactions of each topic: it is written by the clock and at a stop, and
// counted anew from the half topic at a start, so that a death takes nothing.
func TestOpenTransactionsAreCounted(t *testing.T) {
	cfg := transactionConfig(t.TempDir())
	cfg.TransactionTimeOut, cfg.TransactionMetricFlush = time.Hour, 20*time.Millisecond
	r := start(t, cfg)
	r.createTopic("T", 2)
	a, b := r.half("a"), r.half("b")
	r.half("c")
	r.half("d")
	waitFor(t, "the count", func() bool { return r.transactions.open.count("T") == 4 })
	r.end(a, message.TransactionCommit)
	r.end(a, message.TransactionCommit) // said twice
	r.end(b, message.TransactionRollback)
	waitFor(t, "the file", func() bool {
		_, err := os.Stat(filepath.Join(cfg.Store.RootDir, "config", "transactionMetrics"))
		return err == nil && readOpen(t, cfg.Store.RootDir).TransactionCount["T"].Count == 2
	})
	before := readOpen(t, cfg.Store.RootDir)
	if before.DataVersion.Counter != 6 || before.TransactionCount["T"].TimeStamp == 0 {
		t.Errorf("%+v", before)
	}
	r.stop()
	// A file that a death left behind is corrected by what the store holds.
	stale := `{"dataVersion":{"counter":40,"stateVersion":0,"timestamp":7},"transactionCount":{"T":{"count":99,"timeStamp":7},"gone":{"count":3,"timeStamp":7}}}`
	if err := os.WriteFile(filepath.Join(cfg.Store.RootDir, "config", "transactionMetrics"), []byte(stale), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg.TransactionTimeOut, cfg.TransactionCheckMax = 20*time.Millisecond, 2
	r = start(t, cfg)
	if n, gone := r.transactions.open.count("T"), r.transactions.open.count("gone"); n != 2 || gone != 0 {
		t.Errorf("%d and %d open transactions", n, gone)
	}
	p := r.producer("p", nil)
	waitFor(t, "both to be given up", func() bool { return r.store.MaxOffset(message.TopicTransCheckMaxTime, 0) == 2 })
	waitFor(t, "the count", func() bool { return r.transactions.open.count("T") == 0 })
	if len(p.asked()) != 4 {
		t.Errorf("asked %d times", len(p.asked()))
	}
	r.stop()
	if f := readOpen(t, cfg.Store.RootDir); f.TransactionCount["T"].Count != 0 || f.DataVersion.Counter <= 40 {
		t.Errorf("%+v", f)
	}
}

// Of a store that Apache left, as many are open as its file says.
func TestGoldenOpenTransactions(t *testing.T) {
	dir := testkit.GoldenStore(t, "trans")
	want := readOpen(t, dir).TransactionCount["TransTopic"].Count
	cfg := transactionConfig(dir)
	cfg.BrokerClusterName, cfg.BrokerName = "GoldenCluster", "broker-g"
	cfg.Store.CommitLogFileBytes, cfg.Store.FileReservedHours = 1<<20, 1<<20
	cfg.TransactionCheckMax = 1000
	r := start(t, cfg)
	if got := r.transactions.open.count("TransTopic"); got != want || want == 0 {
		t.Errorf("%d open transactions, Apache's file says %d", got, want)
	}
}
