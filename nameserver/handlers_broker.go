package nameserver

import (
	"errors"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/server"
)

// registerBroker takes a registration in all its forms.
func (s *Server) registerBroker(r *server.Request) (*remoting.Command, error) {
	reg, err := decodeRegistration(&r.Command)
	if err != nil {
		return nil, err
	}
	reg.conn = r.Conn().ID()
	r.Conn().SetSession(&brokerSession{r.Conn()})
	s.left.track(r.Conn())

	cfg := s.cfg.Load()
	s.mu.Lock()
	before := len(s.mu.table.live)
	res, err := s.mu.table.register(reg, cfg.rules(), s.clock.Now())
	after := len(s.mu.table.live)
	s.mu.Unlock()

	if r.Conn().State() == server.StateClosed {
		s.left.add(reg.conn) // onClose may have run before the table knew of it
	}
	attrs := []any{"cluster", reg.cluster, "broker", reg.name, "id", reg.id, "addr", reg.addr}
	switch {
	case err != nil:
		s.log.Warn("registration refused", append(attrs, "error", err)...)
		return nil, err
	case res.ignored:
		s.log.Warn("registration ignored: another address holds the id with a later state", attrs...)
	case after > before:
		s.log.Info("broker registered", attrs...)
	}
	if res.notice != nil {
		s.send([]*minIDNotice{res.notice})
	}
	resp := withHeader(&remoting.RegisterBrokerResponseHeader{HAServerAddr: res.haAddr, MasterAddr: res.masterAddr})
	if cfg.ReturnOrderTopicConfigToBroker {
		if kvs := s.kv.namespace(orderNamespace); kvs != nil {
			if resp.Body, err = fastjson.Marshal(remoting.KVTable{Table: kvs}); err != nil {
				return nil, err
			}
		}
	}
	return resp, nil
}

// decodeRegistration reads a REGISTER_BROKER request; it keeps nothing of its bytes.
func decodeRegistration(c *remoting.Command) (registration, error) {
	var h remoting.RegisterBrokerHeader
	if err := remoting.DecodeHeader(c.Fields, &h); err != nil {
		return registration{}, err
	}
	if want := h.BodyCRC32.Or(0); want != 0 && remoting.RegisterBodyCRC(c.Body) != want {
		return registration{}, errors.New("crc32 not match")
	}
	r := registration{
		cluster: h.ClusterName, name: h.BrokerName, addr: h.BrokerAddr, id: h.BrokerID, haAddr: h.HAServerAddr,
		zone:         c.Fields.String(fieldZoneName),
		timeout:      time.Duration(h.HeartbeatTimeoutMillis.Or(0)) * time.Millisecond,
		actingMaster: h.EnableActingMaster,
		body:         &remoting.RegisterBrokerBody{},
	}
	r.completeTopics, _ = c.Fields.Bool(fieldCompleteTopics)
	var err error
	switch {
	case len(c.Body) == 0:
		r.completeTopics = false
	case c.Version < remoting.V3_0_11 && c.Version > 0:
		// Before that the body was the topic table alone, and 0 says nothing.
		err = fastjson.Unmarshal(c.Body, &r.body.Topics)
	default:
		r.body, err = remoting.DecodeRegisterBroker(c.Body, h.Compressed, c.Version)
	}
	return r, err
}

// handleUnregister removes all brokers of the waiting requests in one pass.
func (s *Server) handleUnregister(rs []*server.Request) {
	ds := make([]departure, 0, len(rs))
	taken := make([]*server.Request, 0, len(rs))
	for _, r := range rs {
		var h remoting.UnregisterBrokerHeader
		if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
			r.Reply(remoting.RespSystemError, err.Error())
			continue
		}
		ds = append(ds, departure{replica: replica{h.ClusterName, h.BrokerAddr}, name: h.BrokerName, id: h.BrokerID})
		taken = append(taken, r)
	}
	s.mu.Lock()
	notices := s.mu.table.depart(ds, s.cfg.Load().rules())
	s.mu.Unlock()
	for _, d := range ds {
		s.log.Info("broker unregistered", "cluster", d.cluster, "broker", d.name, "id", d.id, "addr", d.addr)
	}
	s.send(notices)
	for _, r := range taken {
		r.Reply(remoting.RespSuccess, "")
	}
}

func (s *Server) brokerHeartbeat(r *server.Request) (*remoting.Command, error) {
	var h remoting.BrokerHeartbeatHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.table.heartbeat(h.ClusterName, h.BrokerAddr, s.clock.Now())
	return nil, nil
}

// queryDataVersion tells a broker whether it has to register again; the question also
// counts as a sign of life.
func (s *Server) queryDataVersion(r *server.Request) (*remoting.Command, error) {
	var h remoting.QueryDataVersionHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	var theirs remoting.DataVersion
	if len(r.Body) > 0 {
		if err := fastjson.Unmarshal(r.Body, &theirs); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	ours, known := s.mu.table.dataVersion(h.ClusterName, h.BrokerAddr)
	s.mu.table.heartbeat(h.ClusterName, h.BrokerAddr, s.clock.Now())
	s.mu.Unlock()
	resp := withHeader(&remoting.QueryDataVersionResponseHeader{Changed: !known || ours != theirs})
	if known {
		var err error
		if resp.Body, err = fastjson.Marshal(ours); err != nil {
			return nil, err
		}
	}
	return resp, nil
}
