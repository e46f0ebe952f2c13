package broker

import (
	"context"
	"sync"
	"time"

	"mqx/remoting/server"
	"mqx/store"
)

const (
	// coldRate is how many bytes a second, of what is read from disk, are answered to pulls while producers send, or a quarter more than
	// they send: reading back takes processor time in this process, in the kernel and in the consumer, and producers would wait for it.
	coldRate = 220_000_000
	// coldCredit is what the answers may make up for.
	coldCredit = 2 * time.Millisecond
	// coldLook is the time between two looks at what producers send.
	coldLook = 50 * time.Millisecond
	// coldMost bounds the answers that wait, of at most 256 KiB each; more are given at once.
	coldMost = 128
)

// coldPulls answers pulls of what was read from disk, one after the other at a rate that leaves producers their time. While nobody
// sends they are answered at once.
type coldPulls struct {
	b     *Broker
	mu    sync.Mutex
	ended bool          // owned by mu: nobody takes from queue any more
	queue chan coldPull // sent to with mu held

	// Of the goroutine of run.
	due, look time.Time
	end       int64 // of the log at the last look
	rate      int64 // 0: nobody sends
}

type coldPull struct {
	req  *server.Request
	c    pullContext
	code int32
	res  *store.GetResult
}

func newColdPulls(b *Broker) *coldPulls {
	return &coldPulls{b: b, queue: make(chan coldPull, coldMost), rate: coldRate}
}

// answer answers a pull in its turn.
func (p *coldPulls) answer(r *server.Request, c pullContext, code int32, res *store.GetResult) {
	if !p.waits(coldPull{r, c, code, res}) {
		p.b.answerPull(r, &c, code, res)
	}
}

func (p *coldPulls) waits(a coldPull) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	select {
	case p.queue <- a:
		return true
	default:
		return false
	}
}

// run answers until ctx ends, then what is left at once.
func (p *coldPulls) run(ctx context.Context) {
	p.due, p.look, p.end = p.b.now(), p.b.now(), p.b.store.LogEnd()
	for {
		select {
		case <-ctx.Done():
			p.rest()
			return
		case a := <-p.queue:
			if wait := p.wait(a.res.Bytes, p.b.store.LogEnd(), p.b.now()); wait > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(wait):
				}
			}
			p.give(&a)
		}
	}
}

// give answers a pull, unless its connection has got too much unsent since it was read: then it runs again when there is room.
func (p *coldPulls) give(a *coldPull) {
	if !a.req.Conn().Writable() {
		a.res.Release()
		p.b.parkUnwritable(a.req, false) // what comes with a pull has been done
		return
	}
	p.b.answerPull(a.req, &a.c, a.code, a.res)
}

func (p *coldPulls) rest() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	for {
		select {
		case a := <-p.queue:
			p.give(&a)
		default:
			return
		}
	}
}

// wait takes in that n bytes are to be answered while the log ends at end, and returns how long to wait before.
func (p *coldPulls) wait(n int, end int64, now time.Time) time.Duration {
	if d := now.Sub(p.look); d >= coldLook {
		grown := end - p.end
		p.end, p.look, p.rate = end, now, 0
		if grown > 0 {
			p.rate = max(coldRate, int64(1.25*float64(grown)/d.Seconds()))
		}
	}
	if p.rate == 0 {
		p.due = now
		return 0
	}
	if least := now.Add(-coldCredit); p.due.Before(least) {
		p.due = least
	}
	wait := p.due.Sub(now)
	p.due = p.due.Add(time.Duration(n) * time.Second / time.Duration(p.rate))
	return wait
}
