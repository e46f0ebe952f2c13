package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"mqx/internal/props"
	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/remoting/server"
)

// serverConfig is what one server is told.
func (c *Config) serverConfig(port int, limits *server.Limits, log *slog.Logger) server.Config {
	return server.Config{
		Addr:         net.JoinHostPort(strings.Trim(c.BindAddress, "[]"), strconv.Itoa(port)),
		Loops:        c.loops(),
		Limits:       limits,
		IdleTimeout:  c.IdleTimeout,
		SendBuffer:   c.SendBuffer,
		OutboundSoft: int64(c.WriteHigh),
		OutboundHard: int64(max(0, c.WriteHigh)) * 32,

		ReceiveBuffer: c.ReceiveBuffer,
		Serialize:     c.serialize(),
		TLS:           c.serverTLS(),
		Logger:        log,
	}
}

// loops is the number of event loops of a server: by default one for two cores. They serve sends themselves, all that
// have come together in one append; more loops make these smaller and meet in the log. The other cores have pulls, the
// index and whoever else runs here.
func (c *Config) loops() int {
	if c.Loops > 0 {
		return c.Loops
	}
	return max(1, cores/2)
}

func (c *Config) serverTLS() server.TLSConfig {
	return server.TLSConfig{
		Mode: server.TLSMode(c.TLS.Mode), TestMode: c.TLS.TestMode, CertPath: c.TLS.CertPath, KeyPath: c.TLS.KeyPath,
		KeyPassword: c.TLS.KeyPassword, TrustCertPath: c.TLS.TrustCertPath, AuthClient: c.TLS.AuthClient,
		ClientAuth: server.TLSClientAuth(c.TLS.NeedClientAuth), Protocols: splitList(c.TLS.Protocols), Ciphers: splitList(c.TLS.Ciphers),
	}
}

func splitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func (c *Config) serialize() remoting.Serialize {
	if c.SerializeType == "ROCKETMQ" {
		return remoting.SerializeROCKETMQ
	}
	return remoting.SerializeJSON
}

// clientConfig is how name servers are spoken to. It is usable even with an
// error.
func (c *Config) clientConfig(log *slog.Logger) (client.Config, error) {
	out := client.Config{ConnectTimeout: c.ConnectTimeout, RequestTimeout: c.RegisterTimeout, Serialize: c.serialize(), Logger: log}
	var errs []error
	if c.UseTLS || c.TLS.ClientEnable {
		tc, err := client.TLSOptions{
			TestMode: c.TLS.TestMode, AuthServer: c.TLS.ClientAuthServer, TrustCertPath: c.TLS.ClientTrustCertPath,
			CertPath: c.TLS.ClientCertPath, KeyPath: c.TLS.ClientKeyPath, KeyPassword: c.TLS.ClientKeyPassword,
			Protocols: splitList(c.TLS.Protocols), Ciphers: splitList(c.TLS.Ciphers),
		}.Config()
		if err != nil {
			errs = append(errs, err)
		}
		out.TLS = tc
	}
	cred, err := parseCredentials(c.InnerCredentials)
	if err != nil {
		errs = append(errs, err)
	}
	out.Credentials = cred
	return out, errors.Join(errs...)
}

// parseCredentials reads innerClientAuthenticationCredentials; nil for none.
func parseCredentials(text string) (*client.Credentials, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var c struct {
		AccessKey string `json:"accessKey"`
		SecretKey string `json:"secretKey"`
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return nil, fmt.Errorf("innerClientAuthenticationCredentials cannot be read: %w", err)
	}
	if c.AccessKey == "" || c.SecretKey == "" {
		return nil, errors.New("innerClientAuthenticationCredentials lacks accessKey or secretKey")
	}
	return &client.Credentials{AccessKey: c.AccessKey, SecretKey: c.SecretKey}, nil
}

// unsupported refuses what a configuration that did not come from a file
// promises.
func (c *Config) unsupported() error {
	for _, kv := range [][2]string{{"brokerRole", c.BrokerRole}, {"storePathCommitLog", c.Store.CommitLogDir}} {
		if r := refusals.Find(kv[0], kv[1]); r != nil && !allowed(c.AllowUnsupported, kv[0]) {
			return &props.UnsupportedError{File: c.Source, Key: kv[0], Val: kv[1], Why: r.Why}
		}
	}
	return nil
}

func allowed(list []string, key string) bool {
	for _, k := range list {
		if k == key {
			return true
		}
	}
	return false
}
