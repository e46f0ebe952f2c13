//go:build unix

package broker

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"mqx/remoting"
	"mqx/remoting/client"
)

// childWithFew is set in the process that has few descriptors.
const childWithFew = "MQX_TEST_FEW_DESCRIPTORS"

// N104: a broker with few descriptors and more queues than that keeps some for connections and for the small files.
func TestFewDescriptors(t *testing.T) {
	if os.Getenv(childWithFew) == "" {
		cmd := exec.Command("/bin/sh", "-c", `ulimit -n 256 && exec "$0" -test.run '^TestFewDescriptors$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), childWithFew+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	r := start(t, testConfig(t.TempDir()))
	for i := range 100 {
		name := fmt.Sprintf("T%d", i)
		r.createTopic(name, 4)
		for q := range 4 {
			r.send(name, int32(q), "", "x")
		}
	}
	for i := range 40 {
		c := client.New(client.Config{Logger: quiet})
		defer func() { _ = c.Close() }()
		req := remoting.NewRequest(remoting.ReqGetBrokerRuntimeInfo, nil)
		if _, err := c.Call(t.Context(), r.addr, req); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	for i := range 100 {
		for q := range 4 {
			r.ok(remoting.ReqPullMessage, pullHeaderOf("G", fmt.Sprintf("T%d", i), int32(q), 0), nil)
		}
	}
	r.createTopic("later", 1)
}
