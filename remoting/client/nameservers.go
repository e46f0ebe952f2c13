package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"mqx/remoting"
)

// NameServers is a list of name servers of which one is asked at a time. Safe
// to share.
type NameServers struct {
	client *Client
	mu     struct {
		sync.Mutex
		addrs []string
		cur   int
	}
}

// minShare is the least time that one name server of several gets to answer,
// as far as the deadline leaves it.
const minShare = 300 * time.Millisecond

// NewNameServers returns the list addrs, asked through c. The first to be
// asked is picked at random, so that many clients do not all ask the same.
func NewNameServers(c *Client, addrs []string) *NameServers {
	n := &NameServers{client: c}
	n.mu.addrs = slices.Clone(addrs)
	if len(addrs) > 1 {
		n.mu.cur = rand.IntN(len(addrs))
	}
	return n
}

// All returns the addresses.
func (n *NameServers) All() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.mu.addrs)
}

// Current returns the address that is asked first, "" when there is none.
func (n *NameServers) Current() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.mu.addrs) == 0 {
		return ""
	}
	return n.mu.addrs[n.mu.cur]
}

// Update replaces the list. The one that worked last stays first when it is
// still there; connections to those that are not are closed (N093).
func (n *NameServers) Update(addrs []string) {
	cur := n.Current()
	n.mu.Lock()
	old := n.mu.addrs
	n.mu.addrs = slices.Clone(addrs)
	n.mu.cur = max(slices.Index(n.mu.addrs, cur), 0)
	n.mu.Unlock()
	for _, addr := range old {
		if !slices.Contains(addrs, addr) {
			n.client.CloseAddr(addr)
		}
	}
}

// Call asks the name server that worked last and, when it cannot be reached,
// does not answer in its share of the time, or says that it is busy or goes
// away, the next ones. The error names every server that was tried.
func (n *NameServers) Call(ctx context.Context, req *remoting.Command) (*remoting.Command, error) {
	n.mu.Lock()
	addrs, first := n.mu.addrs, n.mu.cur // Update replaces the slice
	n.mu.Unlock()
	if len(addrs) == 0 {
		return nil, errNoAddress
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.client.cfg.RequestTimeout)
		defer cancel()
	}
	var errs []error
	for i := range addrs {
		at := (first + i) % len(addrs)
		resp, err := n.ask(ctx, addrs[at], len(addrs)-i, req)
		if err == nil {
			n.stick(addrs[at])
			return resp, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			break
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, fmt.Errorf("cannot ask any of %d name servers: %w", len(addrs), errors.Join(errs...))
}

// ask asks one name server, within a fair share of the time that ctx leaves
// for it and the others.
func (n *NameServers) ask(ctx context.Context, addr string, left int, req *remoting.Command) (*remoting.Command, error) {
	if left > 1 {
		deadline, _ := ctx.Deadline()
		share := max(time.Until(deadline)/time.Duration(left), minShare)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	resp, err := n.client.Call(ctx, addr, req)
	if err != nil {
		return nil, err
	}
	if left > 1 && (resp.Code == remoting.RespGoAway || resp.Code == remoting.RespSystemBusy) {
		return nil, &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: remoting.RequestName(req.Code), Addr: addr}
	}
	return resp, nil
}

// stick makes addr the one that is asked first.
func (n *NameServers) stick(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at := slices.Index(n.mu.addrs, addr); at >= 0 {
		n.mu.cur = at
	}
}
