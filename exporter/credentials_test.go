package exporter

import (
	"testing"
	"time"

	"mqx/admin"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
	"mqx/remoting/server"
)

// N123: brokers that want requests signed answer an exporter that has credentials, and of one without them it is said that
// it is refused.
func TestBrokersThatWantSignatures(t *testing.T) {
	ns := startNameServer(t)
	signed := func(answer string) func(*server.Request) {
		return func(r *server.Request) {
			if r.Fields.String("AccessKey") != "exporter" || r.Fields.String("Signature") == "" {
				r.Reply(remoting.RespNoPermission, "no signature")
				return
			}
			resp := remoting.NewResponse(&r.Command, remoting.RespSuccess, "")
			resp.Body = []byte(answer)
			r.ReplyWith(resp)
		}
	}
	addr := startFake(t, map[int32]func(*server.Request){
		remoting.ReqGetBrokerRuntimeInfo:          signed(`{"table":{"commitLogDiskRatio":"0.5"}}`),
		remoting.ReqGetAllConsumerOffset:          signed(`{"offsetTable":{}}`),
		remoting.ReqGetAllSubscriptionGroupConfig: signed(`{"subscriptionGroupTable":{},"dataVersion":{}}`),
		remoting.ReqGetAllTopicConfig:             signed(`{"topicConfigTable":{},"dataVersion":{}}`),
	})
	newWire(t).register(ns, "locked", addr)
	up := `mqx_broker_up{addr="` + addr + `",broker_id="0",cluster="c",node_id="locked",node_type="broker"} `

	e := newExporter(t, Options{NoAges: true}, ns)
	e.Round(t.Context())
	wants(t, scrape(t, e, 0), up+"0")

	c, err := admin.New(admin.Config{NameServers: []string{ns}, BrokerTimeout: 5 * time.Second, Credentials: &remoteclient.Credentials{AccessKey: "exporter", SecretKey: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	e, err = New(Options{Client: c, NoAges: true})
	if err != nil {
		t.Fatal(err)
	}
	e.Round(t.Context())
	text := scrape(t, e, 0)
	wants(t, text, up+"1", `mqx_disk_used_ratio{cluster="c",node_id="locked",node_type="broker",part="commitlog"} 0.5`)
}
