package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// A request gets its reply, from either client to a replier of the Java client.
func TestRequestReplyOfClients(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	createTopic(t, c.namesrv, "Requests", 2)
	d := sharedDriver(t)
	d.call(t, "replier", map[string]any{"namesrv": c.namesrv, "topic": "Requests", "group": "e2e_replier"}, nil)
	defer d.call(t, "replierStop", map[string]any{"group": "e2e_replier"}, nil)
	var answer string
	d.call(t, "request", map[string]any{"namesrv": c.namesrv, "topic": "Requests", "body": "from Java"}, &answer)
	if answer != "re: from Java" {
		t.Errorf("%q", answer)
	}
	p := goProducer(t, c.namesrv)
	// The Go client is known to a broker only from its heartbeat on, 30 s after its first message at the latest.
	waitFor(t, 90*time.Second, "the reply to the Go client", func() (bool, string) {
		reply, err := p.Request(context.Background(), 5*time.Second, primitive.NewMessage("Requests", []byte("from Go")))
		if err != nil {
			return false, err.Error()
		}
		return string(reply.Body) == "re: from Go", string(reply.Body)
	})
}
