package doctor

import "mqx/remoting"

// replica is one connection of a master.
type replica struct {
	addr   string
	diff   int64
	inSync bool
}

func haOf(list ...replica) *remoting.HARuntimeInfo {
	h := &remoting.HARuntimeInfo{Master: true}
	for _, r := range list {
		h.ConnectionInfo = append(h.ConnectionInfo, remoting.HAConnectionRuntimeInfo{Addr: r.addr, Diff: r.diff, InSync: r.inSync})
	}
	return h
}
