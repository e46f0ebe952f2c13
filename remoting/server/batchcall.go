package server

// batchCall calls handlers of several requests. The zero value is ready.
type batchCall struct {
	lives []uint64 // of the requests, to tell those that were answered from those that were not
}

// do calls h with rs and returns what it returns. When h panics, those of rs that have
// not been answered are, and count as served.
func (b *batchCall) do(stage string, rs []*Request, h func([]*Request) bool) (served bool, faults int) {
	f := fault{conn: rs[0].conn, code: rs[0].Code, stage: stage}
	for _, r := range rs {
		b.lives = append(b.lives, r.life.Load())
	}
	defer func() {
		if p := recover(); p != nil {
			f.report(p)
			for i, r := range rs {
				r.failPanicked(p, b.lives[i])
			}
			served, faults = true, 1
		}
		b.lives = b.lives[:0]
	}()
	return h(rs), 0
}
