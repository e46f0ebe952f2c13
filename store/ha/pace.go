package ha

import "time"

const (
	// paceCredit is what a sender may make up for: sleeps are longer than they were asked to be, on a busy machine by milliseconds.
	paceCredit = 20 * time.Millisecond
	// farBehind is how much of the log a slave lacks that catches up, farBatch what one of mqx gets in one frame then.
	farBehind = 4 << 20
	farBatch  = 128 << 10
	// writePiece is what is written of a frame in one call: not every system interrupts a call for a thread that has become ready, and
	// producers would wait for all of it.
	writePiece = 32 << 10
	// yieldRate is what a slave that catches up gets in a second while producers send, unless they send more than half of that;
	// yieldCredit what it may make up for: bursts are what producers notice.
	yieldRate   = 200_000_000
	yieldCredit = 2 * time.Millisecond
	// yieldLook is the time between two looks at whether producers send.
	yieldLook = 50 * time.Millisecond
	// asideFrames smaller frames in a row end that a slave gives way, and asideRate bytes a second are the least that it has to
	// get on with meanwhile.
	asideFrames = 16
	asideRate   = 50_000_000
)

// pace is when the next bytes of a sender are due.
type pace struct {
	due    time.Time
	credit time.Duration
}

// sent takes in that n bytes were sent, at a rate that is not to be exceeded, and returns how long to wait before the next.
func (p *pace) sent(n int, rate int64, now time.Time) time.Duration {
	if least := now.Add(-p.credit); p.due.Before(least) {
		p.due = least
	}
	p.due = p.due.Add(time.Duration(n) * time.Second / time.Duration(rate))
	return p.due.Sub(now)
}

// yield makes a slave that catches up give way to producers. While nobody sends it gets all that it can take.
type yield struct {
	pace
	end  int64 // of the log at the last look
	look time.Time
	rate int64 // 0: nobody sends; before the first look somebody may
}

func newYield(end int64, now time.Time) yield {
	return yield{pace: pace{due: now, credit: yieldCredit}, end: end, look: now, rate: yieldRate}
}

// sent takes in that n bytes were sent while the log ended at end, and returns how long to wait before the next.
func (y *yield) sent(n int, end int64, now time.Time) time.Duration {
	if d := now.Sub(y.look); d >= yieldLook {
		grown := end - y.end
		y.end, y.look, y.rate = end, now, 0
		if grown > 0 { // twice of what comes, or it never catches up
			y.rate = max(yieldRate, int64(2*float64(grown)/d.Seconds()))
		}
	}
	if y.rate == 0 {
		y.due = now
		return 0
	}
	return y.pace.sent(n, y.rate, now)
}

// aside is whether a slave gives way to everybody else: while its master sends it frames of farBatch, which says that it is far
// behind, but not when it gets next to nothing done on a machine that is busy all the time: then it goes on as everything does until
// it has caught up.
type aside struct {
	frames int // so many small ones more end it
	began  time.Time
	bytes  int64 // since then
	enough bool
}

func (a *aside) now() bool { return a.frames > 0 && !a.enough }

// took takes in a frame of n bytes.
func (a *aside) took(n int, now time.Time) {
	switch {
	case n >= farBatch && a.frames == 0:
		*a = aside{frames: asideFrames, began: now}
	case n >= farBatch:
		a.frames = asideFrames
	case a.frames > 0:
		a.frames--
	}
	a.bytes += int64(n)
	if d := now.Sub(a.began); d >= time.Second {
		a.enough = a.enough || a.frames > 0 && a.bytes < int64(d.Seconds()*asideRate)
		a.began, a.bytes = now, 0
	}
}
