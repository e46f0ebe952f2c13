package client

import (
	"context"

	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// AskNameServers asks the name server that worked last and, when good does not take its
// answer, all the others at once; the first answer that is good counts. Without one the
// first answer is returned. A name server that does not know something is no authority:
// it may have been restarted empty a moment ago. ctx bounds the whole.
func AskNameServers(ctx context.Context, conn *remoteclient.Client, ns *remoteclient.NameServers, req *remoting.Command, good func(*remoting.Command) bool) (*remoting.Command, error) {
	first, err := ns.Call(ctx, req)
	if err != nil || good(first) {
		return first, err
	}
	others := ns.All()
	if len(others) < 2 {
		return first, nil
	}
	answered := ns.Current()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan *remoting.Command, len(others))
	asked := 0
	for _, addr := range others {
		if addr == answered {
			continue
		}
		asked++
		r := *req
		r.Fields = append(remoting.Fields(nil), req.Fields...)
		go func() {
			resp, err := conn.Call(ctx, addr, &r)
			if err != nil {
				resp = nil
			}
			answers <- resp
		}()
	}
	for range asked {
		if resp := <-answers; resp != nil && good(resp) {
			return resp, nil
		}
	}
	return first, nil
}
