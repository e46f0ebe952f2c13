package nameserver

import (
	"path/filepath"

	"mqx/remoting/server"
)

// Explain says for the start line what was read, where the server listens, where the
// key-value table lies, TLS, what the configuration asked for and has no effect, and warnings.
func (c *Config) Explain() []string { return c.explain(c.ListenAddr()) }

// Explain is Config.Explain with the address that is really listened on, once Ready.
func (s *Server) Explain() []string {
	cfg := s.cfg.Load()
	addr := cfg.ListenAddr()
	if a := s.net.Addr(); a != nil {
		addr = a.String()
	}
	return cfg.explain(addr)
}

func (c *Config) explain(listen string) []string {
	source := "no configuration file: defaults and flags"
	if c.Source != "" {
		source = "configuration " + absolute(c.Source)
	}
	path, err := expandHome(c.KVConfigPath)
	if err != nil {
		path = c.KVConfigPath
	}
	tls := c.serverTLS()
	out := []string{source, "listens on " + listen, "key-value table " + absolute(path), tls.Explain()}
	if open := server.Exposure(c.BindAddress, &tls, server.MachineAddrs); open != "" {
		out = append(out, "warning: "+open)
	}
	return append(out, c.Warnings()...)
}

// absolute is path as it is found from every directory; as it stands where that
// of the process is not known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
