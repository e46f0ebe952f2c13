package nameserver

import (
	"errors"
	"fmt"
	"strings"

	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/server"
)

// newMux registers every request that a name server answers.
func (s *Server) newMux() *server.Mux {
	m := server.NewMux()
	m.HandleInlineOr(remoting.ReqGetRouteInfoByTopic, s.tryRoute, s.classes.route, s.handleRoute)
	m.HandleBatch(remoting.ReqUnregisterBroker, s.classes.unregister, s.handleUnregister)
	for _, sv := range services {
		if sv.handle != nil {
			m.Handle(sv.code, s.classes.rest, func(r *server.Request) { answer(r, s, sv.handle) })
		}
	}
	return m
}

// service is a request that is answered: by handle, or as newMux says where that is nil.
type service struct {
	code   int32
	handle func(*Server, *server.Request) (*remoting.Command, error)
	remark string // what there is to say about it, for docs/compatibility.md
}

var services = []service{
	{remoting.ReqPutKVConfig, (*Server).putKV, "durable when it is answered; " + kvLimits},
	{remoting.ReqGetKVConfig, (*Server).getKV, ""},
	{remoting.ReqDeleteKVConfig, (*Server).deleteKV, "durable when it is answered"},
	{remoting.ReqRegisterBroker, (*Server).registerBroker, "the extra field `completeTopics` takes topics that are missing out of the routes at once; " + registerLimits},
	{remoting.ReqUnregisterBroker, nil, "takes effect before it is answered; those that wait are taken together"},
	{remoting.ReqGetRouteInfoByTopic, nil, "answered on the event loop from ready answers"},
	{remoting.ReqGetBrokerClusterInfo, (*Server).clusterInfo, ""},
	{remoting.ReqWipeWritePermOfBroker, (*Server).wipeWritePerm, ""},
	{remoting.ReqGetAllTopicListFromNameServer, (*Server).allTopics, ""},
	{remoting.ReqDeleteTopicInNamesrv, (*Server).deleteTopic, ""},
	{remoting.ReqRegisterTopicInNamesrv, (*Server).registerTopic, ""},
	{remoting.ReqGetKVListByNamespace, (*Server).listKV, ""},
	{remoting.ReqGetTopicsByCluster, (*Server).clusterTopics, ""},
	{remoting.ReqGetSystemTopicListFromNS, (*Server).systemTopics, ""},
	{remoting.ReqGetUnitTopicList, flaggedTopics(func(f int32) bool { return f&flagUnit != 0 }), ""},
	{remoting.ReqGetHasUnitSubTopicList, flaggedTopics(func(f int32) bool { return f&flagUnitSub != 0 }), ""},
	{remoting.ReqGetHasUnitSubUnUnitTopicList, flaggedTopics(func(f int32) bool { return f&flagUnit == 0 && f&flagUnitSub != 0 }), ""},
	{remoting.ReqUpdateNamesrvConfig, (*Server).updateConfig, "all keys of a request or none; only changed keys are written to the file; the answer's remark says what is active now and what after a restart"},
	{remoting.ReqGetNamesrvConfig, (*Server).getConfig, "keys of mqx's own besides Apache's"},
	{remoting.ReqQueryDataVersion, (*Server).queryDataVersion, ""},
	{remoting.ReqAddWritePermOfBroker, (*Server).addWritePerm, "other permission bits stay (Apache sets exactly read and write)"},
	{remoting.ReqGetBrokerMemberGroup, (*Server).memberGroup, ""},
	{remoting.ReqBrokerHeartbeat, (*Server).brokerHeartbeat, ""},
	{remoting.ReqProbeBroker, (*Server).probeBroker, "mqx's own, for `mqx doctor`: whether this machine reaches a broker that is registered here"},
}

var (
	kvLimits       = fmt.Sprintf("at most %d entries, values of at most %d bytes", maxKVEntries, maxKVValueLen)
	registerLimits = fmt.Sprintf("at most %d broker names with %d replicas each, %d topics", maxBrokerNames, maxReplicas, maxTopics)
)

// codeError is an answer with a code of its own and a remark.
type codeError struct {
	code   int32
	remark string
}

func (e *codeError) Error() string { return e.remark }

// answer runs a handler and writes what it returns; an error becomes SYSTEM_ERROR, or
// the code that it names.
func answer(r *server.Request, s *Server, handle func(*Server, *server.Request) (*remoting.Command, error)) {
	resp, err := handle(s, r)
	var ce *codeError
	switch {
	case errors.As(err, &ce):
		r.Reply(ce.code, ce.remark)
	case err != nil:
		r.Reply(remoting.RespSystemError, err.Error())
	case resp == nil:
		r.Reply(remoting.RespSuccess, "")
	default:
		r.ReplyWith(resp)
	}
}

// withHeader is a success with header fields.
func withHeader(h any) *remoting.Command {
	resp := &remoting.Command{EmptyFields: true}
	remoting.EncodeHeader(&resp.Fields, h)
	return resp
}

// withBody is a success with a JSON body in the loose form.
func withBody(v any) (*remoting.Command, error) {
	b, err := fastjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &remoting.Command{Body: b}, nil
}

// Names of the header fields that the zone hook of clients and brokers sends.
const (
	fieldZoneMode = "__ZONE_MODE"
	fieldZoneName = "__ZONE_NAME"
)

// fieldCompleteTopics is a field of mqx's own in REGISTER_BROKER: true when the body
// holds every topic that the broker has, so that others are taken out of its routes.
// Apache's name server does not look at it (docs/compatibility.md, "Name server").
const fieldCompleteTopics = "completeTopics"

// tryRoute answers a route query from the cache on the event loop; false when it has
// to go the long way.
func (s *Server) tryRoute(r *server.Request) bool {
	topic, ok := r.Fields.Get("topic")
	if !ok || s.cfg.Load().NeedWaitForService {
		return false
	}
	if _, zoned := r.Fields.Get(fieldZoneMode); zoned {
		return false
	}
	standardOnly, _ := r.Fields.Bool("acceptStandardJsonOnly")
	resp := s.cache.tryGet(topic, dialectOf(r.Version, standardOnly))
	if resp == nil {
		return false
	}
	r.ReplyWith(resp)
	return true
}

func (s *Server) handleRoute(r *server.Request) { answer(r, s, (*Server).route) }

func (s *Server) route(r *server.Request) (*remoting.Command, error) {
	var h remoting.GetRouteInfoHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	cfg := s.cfg.Load()
	if cfg.NeedWaitForService && s.clock.Now().Sub(s.started) < cfg.WaitForService {
		return nil, errors.New("name server not ready")
	}
	d := dialectOf(r.Version, h.AcceptStandardJsonOnly)
	zone := ""
	if on, _ := r.Fields.Bool(fieldZoneMode); on {
		zone = strings.TrimSpace(r.Fields.String(fieldZoneName))
	}

	s.mu.RLock()
	defer s.mu.RUnlock()
	route := s.mu.table.route(h.Topic, cfg.rules())
	if route == nil {
		return nil, &codeError{remoting.RespTopicNotExist, "No topic route info in name server for the topic: " + h.Topic +
			"\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."}
	}
	if cfg.OrderMessageEnable {
		if v, ok := s.kv.get(orderNamespace, h.Topic); ok {
			route.OrderTopicConf = &v
		}
	}
	if zone != "" {
		inZone(route, zone)
	}
	body, err := route.Marshal(r.Version, h.AcceptStandardJsonOnly)
	if err != nil {
		return nil, err
	}
	resp := &remoting.Command{Body: body}
	if zone == "" {
		s.cache.put(h.Topic, d, resp)
	}
	return resp, nil
}

func (s *Server) clusterInfo(*server.Request) (*remoting.Command, error) {
	s.mu.RLock()
	info := s.mu.table.clusterInfo()
	s.mu.RUnlock()
	return withBody(info)
}

func (s *Server) memberGroup(r *server.Request) (*remoting.Command, error) {
	var h remoting.GetBrokerMemberGroupHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	s.mu.RLock()
	g := s.mu.table.members(h.ClusterName, h.BrokerName)
	s.mu.RUnlock()
	return withBody(remoting.GetBrokerMemberGroupBody{BrokerMemberGroup: g})
}

func (s *Server) wipeWritePerm(r *server.Request) (*remoting.Command, error) {
	var h remoting.WipeWritePermOfBrokerHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	n := s.changeWritePerm(h.BrokerName, false)
	return withHeader(&remoting.WipeWritePermOfBrokerResponseHeader{WipeTopicCount: int32(n)}), nil
}

func (s *Server) addWritePerm(r *server.Request) (*remoting.Command, error) {
	var h remoting.AddWritePermOfBrokerHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	n := s.changeWritePerm(h.BrokerName, true)
	return withHeader(&remoting.AddWritePermOfBrokerResponseHeader{AddTopicCount: int32(n)}), nil
}

func (s *Server) changeWritePerm(broker string, give bool) int {
	s.mu.Lock()
	n := s.mu.table.changeWritePerm(broker, give)
	s.mu.Unlock()
	s.log.Info("write permission of a broker changed", "broker", broker, "given", give, "topics", n)
	return n
}

func (s *Server) deleteTopic(r *server.Request) (*remoting.Command, error) {
	var h remoting.DeleteTopicFromNamesrvHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.mu.table.deleteTopic(h.Topic, h.ClusterName)
	s.mu.Unlock()
	s.log.Info("topic deleted", "topic", h.Topic, "cluster", h.ClusterName)
	return nil, nil
}

func (s *Server) registerTopic(r *server.Request) (*remoting.Command, error) {
	var h remoting.RegisterTopicHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	var body remoting.TopicRouteData
	if len(r.Body) > 0 {
		if err := fastjson.Unmarshal(r.Body, &body); err != nil {
			return nil, err
		}
	}
	if h.Topic == "" || len(h.Topic) > maxNameLen {
		return nil, fmt.Errorf("cannot register topic: its name must have 1 to %d bytes", maxNameLen)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.table.topics) >= maxTopics && s.mu.table.topics[h.Topic] == nil {
		return nil, fmt.Errorf("cannot register topic %q: the limit of %d topics is reached", h.Topic, maxTopics)
	}
	s.mu.table.registerTopic(h.Topic, body.QueueDatas)
	return nil, nil
}
