package message

import (
	"fmt"
	"testing"
)

func TestLightQueues(t *testing.T) {
	for _, tt := range []struct{ names, offsets, want string }{
		{"", "", ""},
		{"%LMQ%a", "7", "%LMQ%a=7 "},
		{"%LMQ%a,%LMQ%b", "7,0", "%LMQ%a=7 %LMQ%b=0 "},
		{"%LMQ%a,%LMQ%b", "7", "%LMQ%a=7 "},
		{"T,%LMQ%b", "7,8", "%LMQ%b=8 "},
		{"%LMQ%a,%LMQ%b", "x,8", "%LMQ%b=8 "},
		{"%LMQ%a,", "7,8,9", "%LMQ%a=7 "},
	} {
		got := ""
		for name, at := range LightQueues([]byte(tt.names), []byte(tt.offsets)) {
			got += fmt.Sprintf("%s=%d ", name, at)
		}
		if got != tt.want {
			t.Errorf("%q %q: %q, want %q", tt.names, tt.offsets, got, tt.want)
		}
	}
	for name := range LightQueues([]byte("%LMQ%a,%LMQ%b"), []byte("1,2")) {
		if string(name) != "%LMQ%a" {
			t.Error("goes on after the end")
		}
		break
	}
}
