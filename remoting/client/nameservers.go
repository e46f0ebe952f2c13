package client

import (
	"context"

	"mqx/remoting"
)

// NameServers is a list of name servers of which one is asked at a time. Safe
// to share.
type NameServers struct{}

// NewNameServers returns the list addrs, asked through c.
func NewNameServers(c *Client, addrs []string) *NameServers { return &NameServers{} }

// All returns the addresses.
func (n *NameServers) All() []string { return nil }

// Current returns the address that is asked first.
func (n *NameServers) Current() string { return "" }

// Update replaces the list.
func (n *NameServers) Update(addrs []string) {}

// Call asks the name server that worked last and, when it cannot be reached,
// does not answer in its share of the time, or says that it goes away, the
// next ones. The error names every server that was tried.
func (n *NameServers) Call(ctx context.Context, req *remoting.Command) (*remoting.Command, error) {
	panic("not yet")
}

// ParseAddrs reads a list of addresses separated by ';' or ','. An IPv6
// address stands in brackets, a zone is taken off, and each address is
// returned in canonical form; duplicates are dropped.
func ParseAddrs(s string) ([]string, error) { panic("not yet") }
