package server

// batchCall calls handlers of several requests. The zero value is ready.
type batchCall struct {
	lives []uint64 // of the requests, to tell those that were answered from those that were not
}

// do calls h with rs. When h panics, those of rs that have not been answered are.
func (b *batchCall) do(stage string, rs []*Request, h func([]*Request)) (faults int) {
	b.begin(rs)
	defer b.end(fault{conn: rs[0].conn, code: rs[0].Code, stage: stage}, rs, &faults)
	h(rs)
	return 0
}

// try calls h with rs on a loop and returns those that it leaves to the class.
func (b *batchCall) try(rs []*Request, h func([]*Request) []*Request) (left []*Request) {
	b.begin(rs)
	faults := 0
	defer b.end(fault{conn: rs[0].conn, code: rs[0].Code, stage: loopStage}, rs, &faults)
	return h(rs)
}

func (b *batchCall) begin(rs []*Request) {
	for _, r := range rs {
		b.lives = append(b.lives, r.life.Load())
	}
}

// end is deferred.
func (b *batchCall) end(f fault, rs []*Request, faults *int) {
	if p := recover(); p != nil {
		f.report(p)
		for i, r := range rs {
			r.failPanicked(p, b.lives[i])
		}
		*faults = 1
	}
	b.lives = b.lives[:0]
}
