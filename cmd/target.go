package cmd

import (
	"crypto/tls"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/client"
	remoteclient "mqx/remoting/client"
)

const defaultNamesrv = "127.0.0.1:9876"

// targetFlags say which cluster a command talks to and how.
type targetFlags struct {
	namesrv string
	tls     bool
	tlsOpts remoteclient.TLSOptions
}

func (t *targetFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&t.namesrv, "namesrv", "n", "", "name servers, ; or , between them (default $MQX_NAMESRV, $NAMESRV_ADDR, "+defaultNamesrv+")")
	f.BoolVar(&t.tls, "tls", false, "connect with TLS")
	f.StringVar(&t.tlsOpts.TrustCertPath, "tls-ca", "", "file of certificates to trust; without it the server's is not checked, as with Apache's clients")
	f.StringVar(&t.tlsOpts.CertPath, "tls-cert", "", "file of the client's own certificate")
	f.StringVar(&t.tlsOpts.KeyPath, "tls-key", "", "file of the key to it")
}

// nameServers resolves the name servers and says where they came from.
func (a *app) nameServers(flag string) (addrs []string, source string, err error) {
	text, source := a.namesrvText(flag)
	if text == "" {
		text, source = defaultNamesrv, "the default"
	}
	addrs, err = remoteclient.ParseAddrs(text)
	if err != nil {
		return nil, source, usagef("cannot use name servers %q (from %s): %w", text, source, err).try("-n 10.0.0.1:9876")
	}
	return addrs, source, nil
}

// namesrvText is what flag and environment say; "" when they say nothing.
func (a *app) namesrvText(flag string) (text, source string) {
	if flag != "" {
		return flag, "--namesrv"
	}
	for _, name := range []string{"MQX_NAMESRV", "NAMESRV_ADDR"} {
		if v := strings.TrimSpace(a.env(name)); v != "" {
			return v, name
		}
	}
	return "", ""
}

func (a *app) credentials() *remoteclient.Credentials {
	c := remoteclient.Credentials{AccessKey: a.env("MQX_ACCESS_KEY"), SecretKey: a.env("MQX_SECRET_KEY"), Token: a.env("MQX_SECURITY_TOKEN")}
	if c.AccessKey == "" {
		return nil
	}
	return &c
}

func (t *targetFlags) tlsConfig() (*tls.Config, error) {
	if !t.tls {
		if t.tlsOpts.TrustCertPath != "" || t.tlsOpts.CertPath != "" || t.tlsOpts.KeyPath != "" {
			return nil, usagef("cannot use --tls-ca, --tls-cert or --tls-key without --tls: they would have no effect").try("--tls")
		}
		return nil, nil
	}
	o := t.tlsOpts
	o.AuthServer = o.TrustCertPath != ""
	c, err := o.Config()
	if err != nil {
		return nil, usagef("cannot use TLS files: %w", err)
	}
	return c, nil
}

// clientConfig is what the messaging client needs.
func (a *app) clientConfig(t *targetFlags) (client.Config, error) {
	addrs, source, err := a.nameServers(t.namesrv)
	if err != nil {
		return client.Config{}, err
	}
	tlsConfig, err := t.tlsConfig()
	if err != nil {
		return client.Config{}, err
	}
	a.note("name servers %s (from %s)", strings.Join(addrs, ";"), source)
	return client.Config{NameServers: addrs, Credentials: a.credentials(), TLS: tlsConfig, Logger: a.logger()}, nil
}

// adminClient is the management client.
func (a *app) adminClient(t *targetFlags) (*admin.Client, error) {
	addrs, source, err := a.nameServers(t.namesrv)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := t.tlsConfig()
	if err != nil {
		return nil, err
	}
	a.note("name servers %s (from %s)", strings.Join(addrs, ";"), source)
	return admin.New(admin.Config{
		NameServers: addrs, Credentials: a.credentials(), TLS: tlsConfig,
		BrokerTimeout: min(3*time.Second, a.global.timeout), Logger: a.logger(),
	})
}
