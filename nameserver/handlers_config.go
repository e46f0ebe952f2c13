package nameserver

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mqx/internal/props"
	"mqx/internal/vfs"
	"mqx/remoting"
	"mqx/remoting/server"
)

func (s *Server) putKV(r *server.Request) (*remoting.Command, error) {
	var h remoting.PutKVConfigHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	if err := s.kv.put(h.Namespace, h.Key, h.Value); err != nil {
		return nil, err
	}
	s.dropOrdered(h.Namespace, h.Key)
	return nil, nil
}

func (s *Server) deleteKV(r *server.Request) (*remoting.Command, error) {
	var h remoting.DeleteKVConfigHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	if err := s.kv.remove(h.Namespace, h.Key); err != nil {
		return nil, err
	}
	s.dropOrdered(h.Namespace, h.Key)
	return nil, nil
}

// dropOrdered forgets the cached route of a topic whose order configuration changed.
func (s *Server) dropOrdered(namespace, topic string) {
	if namespace == orderNamespace {
		s.mu.Lock() // no route is being built from the old value now
		s.cache.drop(topic)
		s.mu.Unlock()
	}
}

func (s *Server) getKV(r *server.Request) (*remoting.Command, error) {
	var h remoting.GetKVConfigHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	v, ok := s.kv.get(h.Namespace, h.Key)
	if !ok {
		return nil, &codeError{remoting.RespQueryNotFound, "No config item, Namespace: " + h.Namespace + " Key: " + h.Key}
	}
	resp := &remoting.Command{}
	resp.Fields.Set("value", v)
	return resp, nil
}

func (s *Server) listKV(r *server.Request) (*remoting.Command, error) {
	var h remoting.GetKVListByNamespaceHeader
	if err := remoting.DecodeHeader(r.Fields, &h); err != nil {
		return nil, err
	}
	kvs := s.kv.namespace(h.Namespace)
	if kvs == nil {
		return nil, &codeError{remoting.RespQueryNotFound, "No config item, Namespace: " + h.Namespace}
	}
	return withBody(remoting.KVTable{Table: kvs})
}

func (s *Server) getConfig(*server.Request) (*remoting.Command, error) {
	return &remoting.Command{Body: s.cfg.Load().ValuesText()}, nil
}

// liveKeys are the settings that UPDATE_NAMESRV_CONFIG changes in the running server;
// all others count from the next start.
var liveKeys = []string{
	"orderMessageEnable", "returnOrderTopicConfigToBroker", "scanNotActiveBrokerInterval", "supportActingMaster",
	"enableAllTopicList", "enableTopicList", "notifyMinBrokerIdChanged", "needWaitForService", "waitSecondsForService",
	"deleteTopicWithBrokerRegistration", "slowRequestMillis", "logLevel",
}

// updateConfig changes settings: all of the request or none. The answer's remark says
// what is active now and what after a restart, and where it was written.
func (s *Server) updateConfig(r *server.Request) (*remoting.Command, error) {
	if len(bytes.TrimSpace(r.Body)) == 0 {
		return nil, nil
	}
	change, err := props.Parse("request", r.Body)
	if err != nil {
		return nil, err
	}
	s.cfgMu.Lock()
	defer s.cfgMu.Unlock()
	next, now, later, err := s.changedConfig(change)
	if err != nil {
		return nil, err
	}
	if len(now)+len(later) == 0 {
		return nil, nil
	}
	path, err := s.saveConfig(change, append(slices.Clone(now), later...))
	if err != nil {
		return nil, err
	}
	s.mu.Lock() // no route is being built by the old rules now
	s.cfg.Store(next)
	s.cache.clear()
	s.mu.Unlock()
	s.logAs(next)
	s.log.Info("configuration changed", "active_now", now, "after_restart", later, "path", path)
	return &remoting.Command{Remark: changedRemark(now, later, path)}, nil
}

// logAs puts what a configuration says of the log in force.
func (s *Server) logAs(c *Config) {
	s.slow.SetAfter(time.Duration(c.SlowMillis) * time.Millisecond)
	if c.LogLevel != nil && c.Level != "" {
		_ = c.LogLevel.UnmarshalText([]byte(c.Level)) // it has been checked
	}
}

func changedRemark(now, later []string, path string) string {
	var parts []string
	if len(now) > 0 {
		parts = append(parts, "active now: "+strings.Join(now, ", "))
	}
	if len(later) > 0 {
		parts = append(parts, "after a restart: "+strings.Join(later, ", "))
	}
	return strings.Join(parts, "; ") + "; written to " + path
}

// changedConfig applies a change to a copy of the configuration. Keys that nobody knows
// are passed over, as Apache does.
func (s *Server) changedConfig(change *props.File) (next *Config, now, later []string, err error) {
	c := *s.cfg.Load()
	forbidden := append(strings.Split(c.ConfigBlackList, ";"), "configBlackList", "rocketmqHome")
	known := map[string]props.Field{}
	for _, f := range props.Fields(&c) {
		known[f.Key] = f
	}
	for _, e := range change.Entries() {
		if slices.Contains(forbidden, e.Key) {
			return nil, nil, nil, &codeError{remoting.RespNoPermission, "Can not update config in black list."}
		}
		if rf := refusals.Find(e.Key, e.Value); rf != nil {
			return nil, nil, nil, &props.UnsupportedError{Key: e.Key, Val: e.Value, Why: rf.Why}
		}
		f, ok := known[e.Key]
		if !ok {
			if k, ok := keysWithoutEffect[e.Key]; ok {
				if err := props.CheckKind("request", e, k.kind); err != nil {
					return nil, nil, nil, err
				}
				later = append(later, e.Key)
			}
			continue
		}
		if err := f.Set(e.Value); err != nil {
			return nil, nil, nil, fmt.Errorf("cannot set %s: %w", e.Key, err)
		}
		if slices.Contains(liveKeys, e.Key) {
			now = append(now, e.Key)
		} else {
			later = append(later, e.Key)
		}
	}
	if err := c.Validate(); err != nil {
		return nil, nil, nil, err
	}
	return &c, now, later, nil
}

// saveConfig writes the changed keys, and only those, to the configuration file.
func (s *Server) saveConfig(change *props.File, keys []string) (path string, err error) {
	c := s.cfg.Load()
	if path = c.Source; path == "" {
		if path, err = expandHome(c.ConfigStorePath); err != nil {
			return "", err
		}
	}
	data, err := vfs.ReadFile(s.fs, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read configuration %q: %w", path, err)
	}
	f, err := props.Parse(path, data)
	if err != nil {
		return "", err
	}
	for _, k := range keys {
		e, _ := change.Get(k)
		f.Set(k, e.Value)
	}
	if err := s.fs.MkdirAll(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("cannot save configuration %q: %w", path, err)
	}
	if err := vfs.WriteFileDurable(s.fs, path, f.Bytes()); err != nil {
		return "", fmt.Errorf("cannot save configuration %q: %w", path, err)
	}
	return path, nil
}
