package broker

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// Explain says in one line each what the start reports: addresses listened on
// and advertised and why, name servers, store path and flush mode, what the
// configuration asked for and has no effect, and warnings. Complete after
// Ready.
func (b *Broker) Explain() []string {
	cfg, at := b.cfg(), b.at()
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	add("broker %s of cluster %s, id %d, %s, version %s", cfg.BrokerName, cfg.BrokerClusterName, cfg.BrokerID, cfg.BrokerRole, remoting.VersionName(remoting.Version))
	if cfg.Join == JoinEmpty {
		add("joined empty: no topic comes into being by itself (autoCreateTopicEnable=false); create it here with mqx admin topic spread or topic create -b %s", cfg.BrokerName)
	}
	if cfg.Source != "" {
		add("configuration %s", absolute(cfg.Source))
	} else {
		add("no configuration file: defaults and flags")
	}
	add("listens on %v, VIP port on %v (no pulls there)", b.Addr(), b.VIPAddr())
	add("advertised as %s: %s", at.Addr(), at.Why)
	switch {
	case !cfg.isSlave():
		add("slaves are served at %s, level %s", at.haAddr, cfg.rules().Level)
	case cfg.HAMasterAddress != "":
		add("follows the master at %s (haMasterAddress)", cfg.HAMasterAddress)
	default:
		add("follows the master that the name servers tell")
	}
	switch servers := b.nameServerStates(); {
	case len(servers) == 0:
		add("warning: no name server is configured (namesrvAddr): no client finds this broker by a topic's route")
	default:
		add("name servers %s", strings.Join(servers, ", "))
	}
	add("store %s, %s", storePlaces(&cfg.Store), cfg.Store.FlushDiskType)
	tls := cfg.serverTLS()
	add("%s", tls.Explain())
	out = append(out, cfg.Warnings()...)
	if open := server.Exposure(cfg.BindAddress, &tls, machine.Interfaces); open != "" {
		add("warning: %s", open)
	}
	if ip, err := netip.ParseAddr(at.IP); err == nil && ip.IsLoopback() {
		add("warning: the advertised address is a loopback address: only clients on this machine reach the broker")
	}
	return out
}

// storePlaces is the store directory, and that of the log where it lies elsewhere.
func storePlaces(c *store.Config) string {
	root := absolute(c.RootDir)
	if c.CommitLogDir == "" || absolute(c.CommitLogDir) == filepath.Join(root, "commitlog") {
		return root
	}
	return root + " (commit log in " + absolute(c.CommitLogDir) + ")"
}

// absolute is path as it is found from every directory; as it stands where that
// of the process is not known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (b *Broker) nameServerStates() []string {
	if b.registrar == nil { // the start has failed before
		return nil
	}
	var out []string
	for addr, ok := range b.registrar.Servers() {
		if ok {
			out = append(out, addr+" (registered)")
		} else {
			out = append(out, addr+" (not registered yet)")
		}
	}
	slices.Sort(out)
	return out
}
