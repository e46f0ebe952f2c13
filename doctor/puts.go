package doctor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mqx/admin"
	"mqx/internal/words"
)

// The stages of a send, in its order: a rejection belongs to one of them (N131).
var putRules = []Rule{
	{
		ID: "rejected-queued", Scope: ScopeCluster, Severity: Critical, judge: judgeQueued,
		Looks:   "Requests wait long for a worker, or were refused because they did.",
		Meaning: "the stage queued: clients get SYSTEM_BUSY with TIMEOUT_CLEAN_QUEUE before anything was stored; the workers are slow, or too few",
		Mend:    "mqx admin stats get --active --sort -inTps shows who sends; mqx admin config set -b <NAME> waitTimeMillsInSendQueue=1000 waits longer",
	},
	{
		ID: "rejected-locked", Scope: ScopeCluster, Severity: Critical, judge: judgeLocked,
		Looks:   "An append holds the log for longer than a second, or messages were refused because one did.",
		Meaning: "the stage locked: clients get PC_SYNCHRONIZED or broker busy; the disk or the page cache stalls (osPageCacheBusyTimeOutMills)",
		Mend:    "mqx doctor host on the machine of <NAME>: device, Dirty and Writeback, vm.min_free_kbytes",
	},
	{
		ID: "rejected-appended", Scope: ScopeCluster, Severity: Critical, judge: judgeAppended,
		Looks:   "Puts failed since the earlier look, or 99 in 100 need longer than 200 ms.",
		Meaning: "the stage appended: a message reached the log and was not written, or only slowly",
		Mend:    "mqx doctor host on the machine of <NAME>; mqx admin broker status <NAME> for the distribution of put times",
	},
	{
		ID: "rejected-flushed", Scope: ScopeCluster, Severity: Warning, judge: judgeFlushed,
		Looks:   "More than 64 MiB of the log are not on disk, or messages were answered FLUSH_DISK_TIMEOUT.",
		Meaning: "the stage flushed: the disk does not keep up; with a power failure that much is lost (ASYNC_FLUSH), or senders wait (SYNC_FLUSH)",
		Mend:    "mqx doctor host on the machine of <NAME>: which device is saturated, and by whom",
	},
	{
		ID: "dispatch-behind", Scope: ScopeCluster, Severity: Critical, judge: judgeDispatch,
		Looks:   "More than 16 MiB of the log are not in the queues yet.",
		Meaning: "messages are stored and consumers do not see them",
		Mend:    "mqx admin broker status <NAME>; if it does not shrink, mqx debug bundle -O bundle.tar.gz --log FILE with its log, which says what keeps it",
	},
}

// refusedSince is how many requests a broker refused at a stage since the earlier
// survey; ok is false for brokers that do not count it: those of mqx do.
func (j *judgement) refusedSince(b *admin.BrokerSurvey, stage string) (n int64, ok bool) {
	const prefix = "mqxRefused_"
	o := j.Cluster.earlier(b)
	now, okNow := b.Int(prefix + stage)
	if o == nil || !okNow {
		return 0, false
	}
	before, okBefore := o.Int(prefix + stage)
	return now - before, okBefore && now >= before
}

func (j *judgement) judgeRefused(b *admin.BrokerSurvey, stage string) {
	if n, ok := j.refusedSince(b, stage); ok && n > 0 {
		j.find(nameOf(b), "%s refused in %s at the stage %s", words.Count(n, "request was", "requests were"), seconds(j.Cluster.over()), stage)
	}
}

func judgeQueued(j *judgement) {
	j.brokers(func(b *admin.BrokerSurvey) {
		known := false
		for _, pool := range []string{"send", "pull", "query", "litePull"} {
			ms, ok := b.Int(pool + "ThreadPoolQueueHeadWaitTimeMills")
			known = known || ok
			if wait := time.Duration(ms) * time.Millisecond; ok && wait >= j.Limits.HeadWait {
				waiting, _ := b.Int(pool + "ThreadPoolQueueSize")
				j.find(nameOf(b), "the first of %d waiting requests of the %s pool waits for %s", waiting, pool, wait)
			}
		}
		if !known {
			j.unknown("%s does not tell its queues of requests", nameOf(b))
		}
		j.judgeRefused(b, "queued")
	})
	j.ok("no request waits for %s", j.Limits.HeadWait)
}

func judgeLocked(j *judgement) {
	j.brokers(func(b *admin.BrokerSurvey) {
		ms, ok := b.Int("pageCacheLockTimeMills")
		if !ok {
			j.unknown("%s does not tell how long its lock is held", nameOf(b))
			return
		}
		if held := time.Duration(ms) * time.Millisecond; held >= j.Limits.LockHeld && ms < 10_000_000 {
			j.find(nameOf(b), "the append that runs holds the lock for %s", held)
		}
		j.judgeRefused(b, "locked")
	})
	j.ok("no append holds the log")
}

func judgeAppended(j *judgement) {
	j.brokers(func(b *admin.BrokerSurvey) {
		o := j.Cluster.earlier(b)
		failed, ok := b.Int("putMessageFailedTimes")
		p99, okP99 := b.Float("putLatency99")
		if !ok && !okP99 {
			j.unknown("%s does not tell how its puts went", nameOf(b))
			return
		}
		if o != nil && ok {
			if before, there := o.Int("putMessageFailedTimes"); there && failed > before {
				j.find(nameOf(b), "%s failed in %s", words.Count(failed-before, "put"), seconds(j.Cluster.over()))
			}
		}
		if limit := j.Limits.PutP99; okP99 && p99 > float64(limit.Milliseconds()) {
			j.findAs(Warning, nameOf(b), "99 in 100 puts of the last minute took up to %.0f ms", p99)
		}
		j.judgeRefused(b, "appended")
	})
	j.ok("no put failed")
	if j.Cluster.Before == nil {
		j.unknown("failed puts show only between two looks (--for)")
	}
}

func judgeFlushed(j *judgement) {
	j.brokers(func(b *admin.BrokerSurvey) {
		text, _ := b.Text("remainHowManyDataToFlush")
		behind, ok := parseSize(text)
		if !ok {
			j.unknown("%s does not tell what is not flushed", nameOf(b))
			return
		}
		if behind > j.Limits.FlushBehind {
			j.find(nameOf(b), "%s of the log are not on disk", text)
		}
		j.judgeRefused(b, "flushed")
	})
	j.ok("less than %s wait for the disk", size(j.Limits.FlushBehind))
}

// parseSize reads a size as brokers write it: 495 B, 1.5 KiB.
func parseSize(text string) (int64, bool) {
	number, unit, ok := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return 0, false
	}
	for i, u := range []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if u == unit {
			return int64(v * float64(int64(1)<<(10*i))), true
		}
	}
	return 0, false
}

func judgeDispatch(j *judgement) {
	j.brokers(func(b *admin.BrokerSurvey) {
		behind, ok := b.Int("dispatchBehindBytes")
		if !ok {
			j.unknown("%s does not tell what is not dispatched", nameOf(b))
			return
		}
		if behind > j.Limits.DispatchBehind {
			text := fmt.Sprintf("%s of the log are not in the queues", size(behind))
			if o := j.Cluster.earlier(b); o != nil {
				if before, there := o.Int("dispatchBehindBytes"); there {
					text += fmt.Sprintf(", %s %s ago", size(before), seconds(j.Cluster.over()))
				}
			}
			j.find(nameOf(b), "%s", text)
		}
	})
	j.ok("all of the log is in the queues, but for the last moment")
}
