package admin

import (
	"errors"
	"testing"

	"mqx/remoting"
	"mqx/remoting/server"
)

func TestConfigurations(t *testing.T) {
	ns := startNameServer(t)
	startBroker(t, ns, "a")
	c := newClient(t, ns)
	silent := startFake(t, map[int32]func(*server.Request){remoting.ReqGetBrokerConfig: func(*server.Request) {}})
	register(t, c, ns, "c", "b", silent.addr, 0)

	configs, errs, err := c.BrokerConfigs(t.Context(), Target{}, true)
	if err != nil || len(configs) != 1 || configs[0].Name != "a" || configs[0].Values["brokerName"] != "a" || configs[0].Values["fileReservedTime"] != "72" {
		t.Fatalf("%v %v %v", configs, errs, err)
	}
	if len(errs) != 1 || errs[0].Broker != "b" { // named, and not an empty configuration
		t.Errorf("errors: %v", errs)
	}
	dead := closedPort(t)
	both := newClient(t, ns, dead)
	servers, errs := both.NameServerConfigs(t.Context())
	if len(servers) != 1 || servers[0].Addr != ns || servers[0].Values["listenPort"] == "" || len(errs) != 1 || errs[0].Addr != dead {
		t.Errorf("name servers: %v %v", servers, errs)
	}
	if _, errs := c.ControllerConfigs(t.Context(), []string{ns}); len(errs) != 1 || !hasCode(errs[0], remoting.RespRequestCodeNotSupported) {
		t.Errorf("controllers: %v", errs)
	}
	var notFound *NotFoundError
	if _, _, err := c.BrokerConfigs(t.Context(), Target{Broker: "x"}, true); !errors.As(err, &notFound) {
		t.Errorf("unknown broker: %v", err)
	}
}

// A value may hold anything but a line end; nothing is escaped.
func TestPropertyLines(t *testing.T) {
	got := propertyLines([]byte("a=1\r\nb=C:\\x=y\n=lost\nnothing\nempty=\n"))
	if len(got) != 3 || got["a"] != "1" || got["b"] != `C:\x=y` || got["empty"] != "" {
		t.Errorf("%q", got)
	}
}
