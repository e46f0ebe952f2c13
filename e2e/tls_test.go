package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/producer"
)

// TLS on the same ports as plain connections: the Java client, the Go client and
// mqx's own tools connect with it, and what they send plain clients read.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	const topic = "E2E_TLS"
	createTopic(t, c.namesrv, topic, 4)

	java := startDriver(t, "-Dtls.enable=true")
	java.cleanup(t)
	fromJava := numbered("tls-java", 10)
	java.send(t, c.namesrv, topic, "sync", fromJava, nil)

	fromGo := numbered("tls-go", 10)
	p := goProducer(t, c.namesrv, producer.WithTls(true))
	for _, m := range fromGo {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err := p.SendSync(ctx, goMessage(topic, m))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
	fromMqx := numbered("tls-mqx", 1)
	mqx(t, "produce", topic, writeFile(t, testDir(t, "tls"), "line", fromMqx[0].Body), "-n", c.namesrv, "--tls", "-o", "name")

	want := append(append(fromJava, fromGo...), fromMqx...)
	for reader, got := range map[string][]incoming{
		"Java with TLS": java.pull(t, c.namesrv, topic, ""), "plain Java": sharedDriver(t).pull(t, c.namesrv, topic, ""), "mqx with TLS": mqxConsume(t, c.namesrv, topic, "--tls"),
	} {
		if why := missing(want, got); why != "" {
			t.Errorf("%s: %s", reader, why)
		}
	}
}
