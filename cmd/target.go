package cmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	"mqx/internal/contexts"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

const defaultNamesrv = "127.0.0.1:9876"

// targetFlags say which cluster a command talks to and how.
type targetFlags struct {
	namesrv string
	secrets secretFlags
	tls     bool
	ca      string
	cert    string
	key     string
	mapped  []string

	// pinned are the name servers of a plan or a change that is applied again: what
	// neither a flag nor a named context says comes from here.
	pinned chosen[[]string]

	// last are the keys to sign with when nothing else gives any.
	last *contexts.Context

	found *target // what resolve found
}

// secretFlags are the places of the secrets that flags give.
type secretFlags struct {
	accessKey, secretKey, securityToken, tlsKeyPassword sourceFlag
}

func (t *targetFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&t.namesrv, "namesrv", "n", "", "name servers, ; or , between them (default: see mqx help contexts)")
	f.Var(&t.secrets.accessKey, "access-key", "access key that signs requests: env:NAME, file:PATH, cmd:COMMAND or text:KEY")
	f.Var(&t.secrets.secretKey, "secret-key", "secret key to it: env:NAME, file:PATH, cmd:COMMAND; text:KEY is seen by everybody on this machine")
	f.Var(&t.secrets.securityToken, "security-token", "security token to them, if there is one, given likewise")
	f.StringArrayVar(&t.mapped, "map", nil, "dial another address than the one a name server gives, as FROM=TO: host:port, or host for all its ports; may be repeated")
	f.BoolVar(&t.tls, "tls", false, "connect with TLS")
	f.StringVar(&t.ca, "tls-ca", "", "file of certificates to trust; without it the server's is not checked, as with Apache's clients")
	f.StringVar(&t.cert, "tls-cert", "", "file of the client's own certificate")
	f.StringVar(&t.key, "tls-key", "", "file of the key to it")
	f.Var(&t.secrets.tlsKeyPassword, "tls-key-password", "password of that key: env:NAME, file:PATH, cmd:COMMAND or text:PASSWORD")
}

// sourceFlag is a flag whose value says where a secret is found.
type sourceFlag struct{ source contexts.Source }

// String shows the place, never the secret.
func (s *sourceFlag) String() string { return s.source.String() }

// Type names the value in help.
func (s *sourceFlag) Type() string { return "source" }

// Set takes a place. A mistake is told without the text, which may be a secret.
func (s *sourceFlag) Set(text string) (err error) {
	s.source, err = contexts.ParseSource(text)
	return err
}

// chosen is a value and where it came from.
type chosen[T any] struct {
	value  T
	source string // "" while nothing gave a value
}

// target is the cluster of a command: what was given, and by whom.
type target struct {
	context     string // name of the context that gave something, "" for none
	nameServers chosen[[]string]
	accessKey   chosen[contexts.Source]
	secretKey   chosen[contexts.Source]
	token       chosen[contexts.Source]
	keyPassword chosen[contexts.Source]
	tls         chosen[*contexts.TLS] // nil: no TLS
	store       chosen[string]
	mapped      chosen[remoteclient.AddrMap] // nil: nothing is mapped
	marks       contexts.Marks
}

const (
	envNamesrv   = "MQX_NAMESRV"
	envContext   = "MQX_CONTEXT"
	envAccess    = "MQX_ACCESS_KEY"
	envSecret    = "MQX_SECRET_KEY"
	envToken     = "MQX_SECURITY_TOKEN"
	envTLSSecret = "MQX_TLS_KEY_PASSWORD"
)

// resolve finds out which cluster is meant: flag, then the context that is named
// by --context or MQX_CONTEXT, then the environment, then the current context, then
// the default. What the current context says beside its name servers counts only
// for a cluster that is its own.
func (a *app) resolve(t *targetFlags) (*target, error) {
	if t.found != nil {
		return t.found, nil
	}
	file, named, namedBy, err := a.contexts()
	if err != nil {
		return nil, err
	}
	r := &target{}
	current := file.Get(file.Current)
	text, source := t.namesrv, "--namesrv"
	switch env, name := a.namesrvEnv(); {
	case text != "":
	case named != nil && len(named.NameServers) > 0:
		text, source = strings.Join(named.NameServers, ";"), contextSource(named, namedBy)
	case len(t.pinned.value) > 0:
		text, source = strings.Join(t.pinned.value, ";"), t.pinned.source
	case env != "":
		text, source = env, name
	case current != nil && len(current.NameServers) > 0:
		text, source = strings.Join(current.NameServers, ";"), contextSource(current, "current")
	default:
		text, source = defaultNamesrv, "the default"
	}
	addrs, err := remoteclient.ParseAddrs(text)
	if err != nil {
		return nil, usagef("cannot use name servers %q (from %s): %w", text, source, err).try("-n 10.0.0.1:9876")
	}
	r.nameServers = chosen[[]string]{addrs, source}
	if named != nil || current != nil && !shareServer(current, addrs) {
		current = nil
	}
	r.take(a, t, named, namedBy, current)
	if err := r.takeMap(t, named, namedBy, current); err != nil {
		return nil, err
	}
	reached := addrs
	for _, addr := range addrs {
		if to := r.mapped.value.Dialled(addr); to != addr {
			reached = append(slices.Clip(reached), to)
		}
	}
	r.marks = file.Marks(reached, a.lookup)
	t.found = r
	return r, nil
}

// take finds the rest: all but the name servers.
func (r *target) take(a *app, t *targetFlags, named *contexts.Context, namedBy string, current *contexts.Context) {
	for _, c := range []*contexts.Context{named, current} {
		if c != nil && r.context == "" {
			r.context = c.Name
		}
	}
	for _, s := range []struct {
		to   *chosen[contexts.Source]
		flag *sourceFlag
		name string
		env  string
		of   func(*contexts.Context) contexts.Source
	}{
		{&r.accessKey, &t.secrets.accessKey, "--access-key", envAccess, func(c *contexts.Context) contexts.Source { return c.AccessKey }},
		{&r.secretKey, &t.secrets.secretKey, "--secret-key", envSecret, func(c *contexts.Context) contexts.Source { return c.SecretKey }},
		{&r.token, &t.secrets.securityToken, "--security-token", envToken, func(c *contexts.Context) contexts.Source { return c.SecurityToken }},
		{&r.keyPassword, &t.secrets.tlsKeyPassword, "--tls-key-password", envTLSSecret, func(c *contexts.Context) contexts.Source {
			if c.TLS == nil {
				return ""
			}
			return c.TLS.KeyPassword
		}},
	} {
		envSource, envName := a.secretEnv(s.env)
		switch {
		case s.flag.source != "":
			*s.to = chosen[contexts.Source]{s.flag.source, s.name}
		case named != nil && s.of(named) != "":
			*s.to = chosen[contexts.Source]{s.of(named), contextSource(named, namedBy)}
		case envSource != "":
			*s.to = chosen[contexts.Source]{envSource, envName}
		case current != nil && s.of(current) != "":
			*s.to = chosen[contexts.Source]{s.of(current), contextSource(current, "current")}
		}
	}
	for _, c := range []struct {
		context *contexts.Context
		by      string
	}{{named, namedBy}, {current, "current"}} {
		if c.context == nil {
			continue
		}
		if r.tls.source == "" && c.context.TLS != nil {
			r.tls = chosen[*contexts.TLS]{c.context.TLS, contextSource(c.context, c.by)}
		}
		if r.store.source == "" && c.context.Store != "" {
			r.store = chosen[string]{c.context.Store, contextSource(c.context, c.by)}
		}
	}
	if t.last != nil && t.last.AccessKey != "" && r.accessKey.source == "" && r.secretKey.source == "" {
		r.accessKey = chosen[contexts.Source]{t.last.AccessKey, t.last.Name}
		r.secretKey = chosen[contexts.Source]{t.last.SecretKey, t.last.Name}
	}
	if t.tls {
		r.tls = chosen[*contexts.TLS]{&contexts.TLS{CA: t.ca, Cert: t.cert, Key: t.key}, "--tls"}
	}
}

// takeMap finds which addresses are dialled in place of others: those of --map, else
// those of the context.
func (r *target) takeMap(t *targetFlags, named *contexts.Context, namedBy string, current *contexts.Context) (err error) {
	entries, source := t.mapped, "--map"
	switch {
	case len(entries) > 0:
	case named != nil && len(named.Map) > 0:
		entries, source = named.Map, contextSource(named, namedBy)
	case current != nil && len(current.Map) > 0:
		entries, source = current.Map, contextSource(current, "current")
	default:
		return nil
	}
	m, err := remoteclient.ParseAddrMap(entries)
	if err != nil {
		return usagef("%w", err).because("it was given by " + source).try("--map 172.17.0.3:10911=127.0.0.1:20911")
	}
	r.mapped = chosen[remoteclient.AddrMap]{m, source}
	return nil
}

func contextSource(c *contexts.Context, by string) string {
	return "context " + c.Name + " (" + by + ")"
}

func shareServer(c *contexts.Context, addrs []string) bool {
	f := contexts.File{Contexts: []contexts.Context{{Name: c.Name, NameServers: c.NameServers}}}
	return len(f.Marks(addrs, func(string) []string { return nil }).Contexts) > 0
}

// namesrvEnv is what the environment says; "" when it says nothing.
func (a *app) namesrvEnv() (text, source string) {
	for _, name := range []string{envNamesrv, "NAMESRV_ADDR"} {
		if v := strings.TrimSpace(a.env(name)); v != "" {
			return v, name
		}
	}
	return "", ""
}

// secretEnv is where the environment says that a secret is found: NAME holds it,
// NAME_FILE names a file, NAME_COMMAND a command.
func (a *app) secretEnv(name string) (source contexts.Source, said string) {
	switch file, command := a.env(name+"_FILE"), a.env(name+"_COMMAND"); {
	case a.env(name) != "":
		return contexts.Source("env:" + name), name
	case file != "":
		return contexts.Source("file:" + file), name + "_FILE"
	case command != "":
		return contexts.Source("cmd:" + command), name + "_COMMAND"
	}
	return "", ""
}

// credentials reads the keys, nil where none are given.
func (r *target) credentials(ctx context.Context, a *app) (*remoteclient.Credentials, error) {
	if r.accessKey.source == "" && r.secretKey.source == "" {
		return nil, nil
	}
	if r.accessKey.source == "" || r.secretKey.source == "" {
		return nil, usagef("cannot sign requests: an access key and a secret key belong together, and only the one of %s is given",
			cmp.Or(r.accessKey.source, r.secretKey.source)).try("mqx context show")
	}
	c := &remoteclient.Credentials{}
	for _, s := range []struct {
		from chosen[contexts.Source]
		to   *string
	}{{r.accessKey, &c.AccessKey}, {r.secretKey, &c.SecretKey}, {r.token, &c.Token}} {
		var err error
		if *s.to, err = a.secret(ctx, s.from); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// secret reads one secret; "" where none is given.
func (a *app) secret(ctx context.Context, from chosen[contexts.Source]) (string, error) {
	if from.source == "" {
		return "", nil
	}
	text, err := from.value.Read(ctx, a.env)
	if err != nil {
		return "", usagef("%w", err).because("it was given by " + from.source).try("mqx context show")
	}
	return text, nil
}

func (r *target) tlsConfig(ctx context.Context, a *app, t *targetFlags) (*tls.Config, error) {
	if r.tls.value == nil {
		if t.ca != "" || t.cert != "" || t.key != "" {
			return nil, usagef("cannot use --tls-ca, --tls-cert or --tls-key without --tls: they would have no effect").try("--tls")
		}
		return nil, nil
	}
	files := r.tls.value
	o := remoteclient.TLSOptions{
		TrustCertPath: cmp.Or(t.ca, files.CA), CertPath: cmp.Or(t.cert, files.Cert), KeyPath: cmp.Or(t.key, files.Key),
	}
	o.AuthServer = o.TrustCertPath != ""
	var err error
	if o.KeyPassword, err = a.secret(ctx, r.keyPassword); err != nil {
		return nil, err
	}
	c, err := o.Config()
	if err != nil {
		return nil, usagef("cannot use TLS files: %w", err).try("mqx context show")
	}
	return c, nil
}

// connection is what both clients need.
type connection struct {
	nameServers []string
	credentials *remoteclient.Credentials
	tls         *tls.Config
	mapped      remoteclient.AddrMap
}

func (a *app) connection(ctx context.Context, t *targetFlags) (*connection, error) {
	r, err := a.resolve(t)
	if err != nil {
		return nil, err
	}
	c := &connection{nameServers: r.nameServers.value, mapped: r.mapped.value}
	if c.tls, err = r.tlsConfig(ctx, a, t); err != nil {
		return nil, err
	}
	if c.credentials, err = r.credentials(ctx, a); err != nil {
		return nil, err
	}
	a.nameServers = c.nameServers
	a.signed = "requests are not signed, no access key is given"
	if c.credentials != nil {
		a.signed = fmt.Sprintf("requests are signed with access key %q (from %s)", c.credentials.AccessKey, r.accessKey.source)
	}
	a.note("name servers %s (from %s)", strings.Join(c.nameServers, ";"), r.nameServers.source)
	return c, nil
}

// keyNamed tells with a refusal which key was used: one that is not the server's any more
// looks like one that lacks a permission.
func (a *app) keyNamed(f *Failure) *Failure {
	resp, ok := errors.AsType[*remoting.ResponseError](f.Err)
	if !ok || resp.Code != remoting.RespNoPermission || f.Why != "" || a.signed == "" {
		return f
	}
	f.Why = a.signed
	if f.Try == "" {
		f.Try = "mqx context show"
	}
	return f
}

// clientConfig is what the messaging client needs.
func (a *app) clientConfig(ctx context.Context, t *targetFlags) (client.Config, error) {
	c, err := a.connection(ctx, t)
	if err != nil {
		return client.Config{}, err
	}
	return client.Config{NameServers: c.nameServers, Credentials: c.credentials, TLS: c.tls, Map: c.mapped, Logger: a.logger()}, nil
}

// adminClient is the management client.
func (a *app) adminClient(ctx context.Context, t *targetFlags) (*admin.Client, error) {
	c, err := a.connection(ctx, t)
	if err != nil {
		return nil, err
	}
	return admin.New(admin.Config{
		NameServers: c.nameServers, Credentials: c.credentials, TLS: c.tls, Map: c.mapped,
		BrokerTimeout: min(3*time.Second, a.global.timeout), Logger: a.logger(),
	})
}
