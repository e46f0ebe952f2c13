package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mqx/admin"
)

var diskRules = []Rule{
	{
		ID: "disk-watermark", Scope: ScopeCluster, Severity: Critical, judge: judgeWatermarks,
		Looks:   "The disk of a broker's log or queues is at, or within five points of, a line at which something happens.",
		Meaning: "at 75 % files are deleted outside the hour that is set for it, at 85 % young files too, whether they were read or not, at 90 % messages are refused (diskMaxUsedSpaceRatio, diskSpaceCleanForciblyRatio, diskSpaceWarningLevelRatio)",
		Mend:    "mqx admin config set -b <NAME> fileReservedTime=24, or mqx admin broker purge <NAME> --expired; else a larger disk",
	},
	{
		ID: "disk-other-volume", Scope: ScopeCluster, Severity: Warning, judge: judgeOtherVolume,
		Looks:   "Log and queues lie on volumes of which one is much fuller than the other.",
		Meaning: "the fuller one decides when messages are refused, however much room the other has",
		Mend:    "mqx admin config get -b <NAME> storePathCommitLog storePathRootDir; move the smaller part to the other volume while the broker is stopped",
	},
}

// watermark is one line of a disk, with what happens there.
type watermark struct {
	percent int64
	does    string
	bad     Severity
}

// watermarks are the lines of a broker: as it is configured, else Apache's defaults.
func watermarks(b *admin.BrokerSurvey) []watermark {
	value := func(key string, def int64) int64 {
		if n, err := strconv.ParseInt(b.Config[key], 10, 64); err == nil {
			return n
		}
		return def
	}
	return []watermark{
		{value("diskSpaceWarningLevelRatio", 90), "messages are refused", Critical},
		{value("diskSpaceCleanForciblyRatio", 85), "files are deleted although they are young and may be unread", Critical},
		{value("diskMaxUsedSpaceRatio", 75), "expired files are deleted at any hour", Warning},
	}
}

// near is how close to a line is a finding, in points.
const near = 5

func judgeWatermarks(j *judgement) {
	var seen []string
	j.brokers(func(b *admin.BrokerSurvey) {
		for key, what := range map[string]string{"commitLogDiskRatio": "log", "consumeQueueDiskRatio": "queues"} {
			ratio, ok := b.Float(key)
			if !ok || ratio < 0 {
				j.unknown("%s does not tell how full the disk of its %s is", nameOf(b), what)
				continue
			}
			used := int64(ratio*100 + 0.5)
			if what == "log" {
				seen = append(seen, fmt.Sprintf("%s %d %%", nameOf(b), used))
			}
			if text, bad, hit := lineOf(used, watermarks(b)); hit {
				capacity, _ := b.Text("commitLogDirCapacity")
				if other, ok := b.Float("commitLogDiskRatio"); what == "queues" && ok && other == ratio {
					continue // the same volume, told already
				}
				if capacity != "" {
					text += " (" + strings.TrimSuffix(capacity, ".") + ")"
				}
				j.findAs(bad, nameOf(b), "the disk of its %s is %d %% full: %s", what, used, text)
			}
		}
	})
	slices.Sort(seen)
	j.ok("used: %s", someOf(seen))
}

// lineOf says at which line a disk is, and which higher one it comes near to.
func lineOf(used int64, lines []watermark) (text string, bad Severity, hit bool) {
	for _, l := range lines { // the highest first
		if used >= l.percent {
			at := fmt.Sprintf("at %d %% %s", l.percent, l.does)
			if text != "" {
				at += "; " + text
			}
			return at, l.bad, true
		}
		if used >= l.percent-near {
			text, bad, hit = fmt.Sprintf("at %d %% %s, %d points from here", l.percent, l.does, l.percent-used), Warning, true
		}
	}
	return text, bad, hit
}

func judgeOtherVolume(j *judgement) {
	j.brokers(func(b *admin.BrokerSurvey) {
		log, okLog := b.Float("commitLogDiskRatio")
		queues, okQueues := b.Float("consumeQueueDiskRatio")
		if !okLog || !okQueues || log < 0 || queues < 0 {
			j.unknown("%s does not tell both ratios", nameOf(b))
			return
		}
		const apart = 0.2
		if d := log - queues; (d > apart || d < -apart) && max(log, queues) >= 0.6 {
			j.find(nameOf(b), "the volume of the log is %.0f %% full, that of the queues %.0f %%", log*100, queues*100)
		}
	})
	j.ok("log and queues have about the same room everywhere")
}
