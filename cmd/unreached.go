package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"mqx/admin"
	"mqx/internal/contexts"
	remoteclient "mqx/remoting/client"
)

// peer is a server that did not answer, as far as an error tells.
type peer struct {
	role   string // admin.RoleBroker, …; "" where the error does not tell
	broker string // name of the broker
}

func peerOf(err error) peer {
	p := peer{}
	if at, ok := errors.AsType[*admin.PeerError](err); ok {
		p.role = at.Role
	}
	if at, ok := errors.AsType[admin.TargetError](err); ok && at.Broker != "" {
		p.broker = at.Broker
		if p.role == "" {
			p.role = admin.RoleBroker
		}
	}
	return p
}

// nameServerHint is where another name server may be.
const nameServerHint = "mqx dev (a name server and a broker here), or -n HOST:9876 for another one"

// unreached tells of a server that no connection could be made to: what it is, and where
// else it could be.
func unreached(f *Failure, c *remoteclient.ConnectError) *Failure {
	f.Code = ExitConnect
	if c.Dialled != "" {
		f.Why = fmt.Sprintf("nothing answers at %s, which stands for %s here (--map or the context)", c.Dialled, c.Addr)
		f.Try = "mqx context show"
		return f
	}
	f.Why = fmt.Sprintf("nothing answers at %s", c.Addr)
	switch p := peerOf(f.Err); p.role {
	case admin.RoleController:
		f.Why, f.Try = "no controller answers at "+c.Addr, controllerHint
	case admin.RoleContainer:
		f.Why, f.Try = "no container of brokers answers at "+c.Addr, "--container with the address that the container listens at"
	case admin.RoleBroker:
		if p.broker == "" {
			return brokerUnreached(f, c.Addr)
		}
		f.Why += ", the address that broker " + p.broker + " is registered under"
		f.Try = mapHint(c.Addr)
	default:
		f.Try = nameServerHint
	}
	return f
}

const controllerHint = "--controller with the address of another one; controllerAddr of the brokers names them: mqx admin config get --match key=controllerAddr"

// brokerUnreached tells of a broker that is known by its address alone.
func brokerUnreached(f *Failure, addr string) *Failure {
	f.Why = "no broker answers at " + addr
	f.Try = "mqx admin broker ls shows which are registered; " + mapHint(addr)
	return f
}

// mapHint is how a server is reached that is registered under an address of another
// network.
func mapHint(addr string) string {
	return "--map " + addr + "=HOST:PORT, if it can only be reached under another address from here"
}

// peerNamed tells of a server that the messaging client could not connect to, which does
// not say what it is: a broker, where it is none of the name servers.
func (a *app) peerNamed(f *Failure) *Failure {
	c, ok := errors.AsType[*remoteclient.ConnectError](f.Err)
	if !ok || f.Try != nameServerHint || c.Dialled != "" || peerOf(f.Err).role != "" || len(a.nameServers) == 0 {
		return f
	}
	if contexts.Share(a.nameServers, []string{c.Addr}, a.lookup) {
		return f
	}
	return brokerUnreached(f, c.Addr)
}

// unanswered: the other side said nothing, or no longer.
func unanswered(err error) bool {
	_, late := errors.AsType[*remoteclient.TimeoutError](err)
	_, closed := errors.AsType[*remoteclient.ClosedError](err)
	_, network := errors.AsType[*net.OpError](err)
	return late || closed || network || errors.Is(err, context.DeadlineExceeded)
}

// silent tells of a server that a connection was made to and that did not answer.
func silent(f *Failure, err error) {
	p := peerOf(err)
	try := map[string]string{
		admin.RoleNameServer: "-n HOST:9876 for another name server",
		admin.RoleController: controllerHint,
		admin.RoleContainer:  "the log of the container",
		admin.RoleBroker:     "mqx doctor cluster, which says what holds brokers up",
	}[p.role]
	if try == "" {
		return
	}
	if late, ok := errors.AsType[*remoteclient.TimeoutError](err); ok {
		f.Why, f.Try = fmt.Sprintf("what listens at %s took the connection and does not answer: it hangs, or is overloaded", late.Addr), try
	}
	if closed, ok := errors.AsType[*remoteclient.ClosedError](err); ok && !errors.Is(err, io.EOF) {
		f.Why, f.Try = fmt.Sprintf("%s may have done what was asked, or not: it ended the connection before it answered", closed.Addr), try
	}
}
