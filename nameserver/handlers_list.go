package nameserver

import (
	"mqx/remoting"
	"mqx/remoting/server"
)

// errDisabled answers a list that the configuration does not allow.
var errDisabled = &codeError{remoting.RespNoPermission, "disable"}

func (s *Server) allTopics(*server.Request) (*remoting.Command, error) {
	if !s.cfg.Load().EnableAllTopicList {
		return nil, errDisabled
	}
	s.mu.RLock()
	names := s.mu.table.allTopics()
	s.mu.RUnlock()
	return withBody(remoting.TopicList{TopicList: names})
}

func (s *Server) systemTopics(*server.Request) (*remoting.Command, error) {
	s.mu.RLock()
	names, addr := s.mu.table.systemTopics()
	s.mu.RUnlock()
	return withBody(remoting.TopicList{TopicList: names, BrokerAddr: addr})
}

func (s *Server) clusterTopics(r *server.Request) (*remoting.Command, error) {
	if !s.cfg.Load().EnableTopicList {
		return nil, errDisabled
	}
	var h remoting.GetTopicsByClusterHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	s.mu.RLock()
	names := s.mu.table.clusterTopics(h.Cluster)
	s.mu.RUnlock()
	return withBody(remoting.TopicList{TopicList: names})
}

// flaggedTopics lists topics by their system flag.
func flaggedTopics(has func(flag int32) bool) func(*Server, *server.Request) (*remoting.Command, error) {
	return func(s *Server, _ *server.Request) (*remoting.Command, error) {
		if !s.cfg.Load().EnableTopicList {
			return nil, errDisabled
		}
		s.mu.RLock()
		names := s.mu.table.flaggedTopics(has)
		s.mu.RUnlock()
		return withBody(remoting.TopicList{TopicList: names})
	}
}
