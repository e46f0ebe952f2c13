package broker

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"mqx/message"
)

// findAddress decides what to advertise. The port is known later when a free
// one is taken.
func (b *Broker) findAddress(ctx context.Context) error {
	cfg := b.cfg()
	servers, err := parseServers(cfg.NamesrvAddr)
	if err != nil {
		return fmt.Errorf("cannot read namesrvAddr %q: %w", cfg.NamesrvAddr, err)
	}
	ip, why := chooseAddress(cfg.BrokerIP1, cfg.BindAddress, servers, machine)
	if cfg.BrokerIP1 != "" && cfg.BrokerIP1From != "" {
		why = "given (" + cfg.BrokerIP1From + ")"
	}
	host, err := resolveHost(ctx, ip)
	if err != nil {
		return err
	}
	b.ids = message.NewIDGenerator(host, pid(), b.clock)
	at := &endpoint{advertised: advertised{IP: ip, Why: why}, storeHost: netip.AddrPortFrom(host, 0)}
	b.endpoint.Store(at)
	if cfg.ListenPort > 0 {
		b.setPort(cfg.ListenPort)
	}
	return nil
}

// setPort completes the address.
func (b *Broker) setPort(port int) {
	cfg, at := b.cfg(), *b.at()
	at.Port = port
	at.storeHost = netip.AddrPortFrom(at.storeHost.Addr(), uint16(port))
	ha := cfg.HAListenPort
	if ha <= 0 {
		ha = port + 1
	}
	at.haAddr = b.haAddress(&at, ha)
	b.endpoint.Store(&at)
}

// setHAPort completes the address of the replication port.
func (b *Broker) setHAPort(port int) {
	at := *b.at()
	at.haAddr = b.haAddress(&at, port)
	b.endpoint.Store(&at)
}

func (b *Broker) haAddress(at *endpoint, port int) string {
	ip2 := strings.Trim(b.cfg().BrokerIP2, "[]")
	if ip2 == "" {
		ip2 = at.IP
	}
	return net.JoinHostPort(ip2, strconv.Itoa(port))
}

// loadTopics loads the topics. Where only the backup was left, those that came
// since are found by their queues: what was acknowledged stays readable.
func (b *Broker) loadTopics() error {
	if err := b.topics.Load(); err != nil || !b.topics.fromBackup {
		return err
	}
	queues := map[string]int32{}
	for q := range b.store.Queues() {
		queues[q.Topic] = max(queues[q.Topic], q.QueueID+1)
	}
	return b.topics.Adopt(queues)
}

// staticTopicsFile is the file of static topics.
const staticTopicsFile = "topicQueueMapping.json"

// loadStatics loads the mappings of the topics that are there. Where only the backup of the topics was left, all are kept.
func (b *Broker) loadStatics() error {
	return b.statics.Load(func(topic string) bool { return b.topics.fromBackup || b.topics.Get(topic) != nil })
}

// Periods of the clock work.
const (
	sampleEvery = 10 * time.Second // statistics, expired clients (Apache scans as often)
	sweepEvery  = time.Minute      // expired queue locks
)

// keepTime does what is due by the clock until ctx ends.
func (b *Broker) keepTime(ctx context.Context) {
	sample := time.NewTicker(sampleEvery)
	defer sample.Stop()
	save := time.NewTicker(b.cfg().FlushConsumerOffset)
	defer save.Stop()
	names := time.NewTicker(max(time.Second, b.cfg().RefreshAddrPeriod))
	defer names.Stop()
	swept := b.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-save.C:
			_ = b.offsets.Save() // logs its failure and tries again next time
		case <-sample.C:
			now := b.now()
			b.stats.Sample(now)
			s := b.store.Stats()
			b.rates.Sample(&s, b.brokerPuts.Total(), b.brokerGets.Total(), now)
			b.expireClients(now)
			_ = b.pops.Save()    // logs its failure and tries again next time
			_ = b.filters.Save() // logs its failure and tries again next time
			if now.Sub(swept) >= sweepEvery {
				swept = now
				b.locks.Sweep(nil)
				b.pops.Sweep()
				b.timers.expire()
			}
		case <-names.C:
			b.refreshIfReady(ctx)
		case <-b.renaming:
			b.refreshIfReady(ctx)
		}
	}
}

func (b *Broker) refreshIfReady(ctx context.Context) {
	select {
	case <-b.ready:
		b.refreshNameServers(ctx)
	default:
	}
}

// wakeNaming makes a new list of name servers count at once.
func (b *Broker) wakeNaming() { signal(b.renaming) }
