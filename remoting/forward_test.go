package remoting_test

import (
	"fmt"
	"strings"
	"testing"

	"mqx/remoting"
)

func TestForward(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text   string
		queue  int32
		broker string
		to     int32
		sealed bool
	}{
		{"0|d:4", 3, "d", 3, true},
		{"0|d:4", 4, "d", 0, true},
		{"0|d:2;e:1", 4, "d", 1, true},
		{"0|d:2;e:1", 2, "e", 0, true},
		{"2|b:2", 1, "", 0, false},
		{"2|b:2", 5, "b", 1, true},
		{"0|d:65536", 65535, "d", 65535, true},
		{"65535|d:1", 65534, "", 0, false},
		{"65535|d:1", 65535, "d", 0, true},
	} {
		f, err := remoting.ParseForward(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if to, sealed := f.Slot(tt.queue); to != (remoting.ForwardSlot{Broker: tt.broker, Queue: tt.to}) || sealed != tt.sealed {
			t.Errorf("%s: queue %d goes to %+v, %v", tt.text, tt.queue, to, sealed)
		}
		if f.String() != tt.text {
			t.Errorf("%s is written as %s", tt.text, f)
		}
	}
	for _, text := range []string{
		"", "0", "|d:4", "-1|d:4", "65536|d:4", "65537|d:4", "0|", "0|d", "0|d:0", "0|d:-1", "0|d:x", "0|:4", "0|d:65537", "0|d:65536;e:1", "0|d:99999999999", "x|d:4", "0|d:4;", "0|a|b:4", "0|a,b:4",
	} {
		if f, err := remoting.ParseForward(text); err == nil {
			t.Errorf("%q is %v", text, f)
		}
	}
	var none *remoting.Forward
	f := &remoting.Forward{To: []remoting.ForwardTo{{Broker: "ab", Queues: 1}}}
	if none.LeadsTo("a") || f.LeadsTo("a") || !f.LeadsTo("ab") {
		t.Error("it leads elsewhere")
	}
}

// What can be read is written as it can be read again, and every sealed queue has one place.
func FuzzForward(f *testing.F) {
	for _, s := range []string{"0|d:4", "2|b:2;c:1", "0|", "", "65535|broker-a:65536"} {
		f.Add(s, int32(7))
	}
	f.Fuzz(func(t *testing.T, text string, queue int32) {
		fw, err := remoting.ParseForward(text)
		if err != nil {
			return
		}
		again, err := remoting.ParseForward(fw.String())
		if err != nil || again.String() != fw.String() {
			t.Fatalf("%q is written as %q: %v", text, fw, err)
		}
		to, sealed := fw.Slot(queue)
		if sealed != (queue >= fw.From) || sealed && (!fw.LeadsTo(to.Broker) || to.Queue < 0 || !strings.Contains(";"+fw.Targets(), fmt.Sprintf(";%s:", to.Broker))) {
			t.Fatalf("%q: queue %d goes to %+v, %v", text, queue, to, sealed)
		}
	})
}
