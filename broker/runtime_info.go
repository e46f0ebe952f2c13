package broker

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// rateWindows are the three windows of the TPS triples.
var rateWindows = [...]time.Duration{10 * time.Second, time.Minute, 10 * time.Minute}

// rateSample is the store's counters at a time.
type rateSample struct {
	at                            time.Time
	put, found, miss, transferred int64
}

// rates keeps samples of the store's counters for ten minutes, and the totals
// of messages at the last two midnights. Safe to share.
type rates struct {
	mu struct {
		sync.Mutex
		samples []rateSample
		day     int // day of the year of the last sample
		// totals at the last and the last but one midnight
		putMorning, getMorning, putBefore, getBefore int64
	}
}

func sampleOf(s *store.Stats, now time.Time) rateSample {
	return rateSample{at: now, put: s.PutMessages, found: s.GetFound, miss: s.GetMissed, transferred: s.GetMessages}
}

// Sample is to be called every ten seconds.
func (r *rates) Sample(s *store.Stats, putTotal, getTotal int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.samples = append(r.mu.samples, sampleOf(s, now))
	if n := len(r.mu.samples) - 61; n > 0 {
		r.mu.samples = append(r.mu.samples[:0], r.mu.samples[n:]...)
	}
	day := now.YearDay()
	if r.mu.day != 0 && r.mu.day != day {
		r.mu.putBefore, r.mu.getBefore = r.mu.putMorning, r.mu.getMorning
		r.mu.putMorning, r.mu.getMorning = putTotal, getTotal
	}
	r.mu.day = day
}

// Triple is "x y z": a rate over the three windows.
func (r *rates) Triple(cur rateSample, value func(rateSample) int64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := ""
	for _, w := range rateWindows {
		rate := 0.0
		for _, s := range r.mu.samples { // oldest first
			if d := cur.at.Sub(s.at); d > 0 && d <= w+time.Second {
				rate = float64(value(cur)-value(s)) / d.Seconds()
				break
			}
		}
		text += formatRate(rate) + " "
	}
	return text
}

func formatRate(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if v == math.Trunc(v) {
		s += ".0"
	}
	return s
}

// handleRuntimeInfo serves GET_BROKER_RUNTIME_INFO.
func (b *Broker) handleRuntimeInfo(r *server.Request) {
	kv := &remoting.KVTable{Table: b.runtimeInfo(b.now())}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, kv)
	p.to(r)
}

// runtimeInfo is the table of GET_BROKER_RUNTIME_INFO, with Apache's keys and those of mqx (mqx…).
func (b *Broker) runtimeInfo(now time.Time) map[string]string {
	s := b.store.Stats()
	t := map[string]string{}
	num := func(key string, v int64) { t[key] = strconv.FormatInt(v, 10) }

	num("bootTimestamp", b.started.UnixMilli())
	t["runtime"] = runtimeText(now.Sub(b.started))
	t["brokerActive"] = "true"
	t["brokerVersionDesc"] = remoting.VersionName(remoting.Version)
	num("startAcceptSendRequestTimeStamp", b.cfg().StartAcceptSendAt)

	num("putMessageEntireTimeMax", b.putTimes.MaxMs())
	num("putMessageTimesTotal", s.PutMessages)
	num("putMessageFailedTimes", s.PutFailed)
	num("putMessageSizeTotal", s.PutBytes)
	t["putMessageDistributeTime"] = b.putTimes.Distribution()
	t["putMessageAverageSize"] = formatRate(float64(s.PutBytes) / float64(max(1, s.PutMessages)))
	t["putLatency99"] = fmt.Sprintf("%.2f", b.putTimes.Quantile(0.99))
	t["putLatency999"] = fmt.Sprintf("%.2f", b.putTimes.Quantile(0.999))
	num("getMessageEntireTimeMax", b.getTimes.MaxMs())

	cur := sampleOf(&s, now)
	t["putTps"] = b.rates.Triple(cur, func(r rateSample) int64 { return r.put })
	t["getFoundTps"] = b.rates.Triple(cur, func(r rateSample) int64 { return r.found })
	t["getMissTps"] = b.rates.Triple(cur, func(r rateSample) int64 { return r.miss })
	t["getTotalTps"] = b.rates.Triple(cur, func(r rateSample) int64 { return r.found + r.miss })
	t["getTransferredTps"] = b.rates.Triple(cur, func(r rateSample) int64 { return r.transferred })
	b.totals(num)
	b.logInfo(t, num, &s)
	b.poolInfo(num)
	b.delayInfo(t)
	b.diagnosisInfo(t, now)
	t[remoting.InfoForward] = "true"
	return t
}

// totals are the messages of today and yesterday.
func (b *Broker) totals(num func(string, int64)) {
	b.rates.mu.Lock()
	defer b.rates.mu.Unlock()
	m := &b.rates.mu
	num("msgPutTotalYesterdayMorning", m.putBefore)
	num("msgPutTotalTodayMorning", m.putMorning)
	num("msgPutTotalTodayNow", b.brokerPuts.Total())
	num("msgGetTotalYesterdayMorning", m.getBefore)
	num("msgGetTotalTodayMorning", m.getMorning)
	num("msgGetTotalTodayNow", b.brokerGets.Total())
}

// logInfo is the state of the log and its disks.
func (b *Broker) logInfo(t map[string]string, num func(string, int64), s *store.Stats) {
	num("commitLogMinOffset", s.LogMin)
	num("commitLogMaxOffset", s.LogEnd)
	num("dispatchBehindBytes", s.DispatchBehindBytes)
	num("dispatchMaxBuffer", 0)
	num("pageCacheLockTimeMills", s.AppendLockHeldMs)
	num("earliestMessageTimeStamp", s.EarliestMessageTimestamp)
	t["remainHowManyDataToFlush"] = humanBytes(max(0, s.LogEnd-s.LogFlushed))
	// No transient pool: the number Apache shows without one.
	num("remainTransientStoreBufferNumbs", math.MaxInt32)
	for _, d := range s.Disk {
		ratio := fmt.Sprintf("%.2f", float64(d.UsedPct)/100)
		switch d.Name {
		case "commitlog":
			t["commitLogDiskRatio"] = ratio
			t["commitLogDiskRatio_"+d.Path] = ratio
			t["commitLogDirCapacity"] = fmt.Sprintf("Total : %s, Free : %s.", humanBytes(d.Total), humanBytes(d.Free))
		case "consumequeue":
			t["consumeQueueDiskRatio"] = ratio
		}
	}
	read, offsets, waiting := b.timers.behind()
	num("timerReadBehind", read)
	num("timerOffsetBehind", offsets)
	num("timerCongestNum", waiting)
	in, out := b.timers.tps(b.now())
	t["timerEnqueueTps"], t["timerDequeueTps"] = formatRate(in), formatRate(out)
}

// poolInfo is the state of the request classes under Apache's names.
func (b *Broker) poolInfo(num func(string, int64)) {
	cfg := b.cfg()
	pool := func(name string, capacity int, c *server.Class) {
		st := c.Stats()
		num(name+"ThreadPoolQueueSize", int64(st.Waiting))
		num(name+"ThreadPoolQueueCapacity", int64(capacity))
		num(name+"ThreadPoolQueueHeadWaitTimeMills", st.OldestWait.Milliseconds())
	}
	pool("send", cfg.SendQueue, b.classes.send)
	pool("pull", cfg.PullQueue, b.classes.pull)
	pool("litePull", cfg.LitePullQueue, b.classes.litePull)
	pool("query", cfg.QueryQueue, b.classes.query)
	pool("ack", cfg.AckQueue, b.classes.ack)
	num("EndTransactionQueueSize", int64(b.classes.end.Stats().Waiting))
	num("EndTransactionThreadPoolQueueCapacity", int64(cfg.EndTransactionQueue))
}

// runtimeText is the age of the process as Apache writes it.
func runtimeText(d time.Duration) string {
	s := int64(d / time.Second)
	return fmt.Sprintf("[ %d days, %d hours, %d minutes, %d seconds ]", s/86400, s/3600%24, s/60%60, s%60)
}

// humanBytes is a size as Apache writes it: 495 B, 1.5 KiB.
func humanBytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	exp := int(math.Log(float64(n)) / math.Log(1024))
	return fmt.Sprintf("%.1f %ciB", float64(n)/math.Pow(1024, float64(exp)), "KMGTPE"[exp-1])
}
