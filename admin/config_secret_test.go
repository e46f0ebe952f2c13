package admin

import (
	"fmt"
	"strings"
	"testing"
)

// The values of secrets are in no step of a plan, nor in what a difference tells.
func TestConfigStepsHideSecrets(t *testing.T) {
	k := brokerConfigCells
	was, is := &ConfigValue{Value: "pw-old"}, &ConfigValue{Value: "pw-new"}
	s := k.step(cell[ConfigValue]{part: "initAuthenticationUser", was: was, is: is}, "initAuthenticationUser")
	if text := fmt.Sprint(s, k.textOf("initAuthenticationUser", was)); strings.Contains(text, "pw-") || s.Action != ActionUpdate {
		t.Errorf("the step shows %s", text)
	}
	if s := k.step(cell[ConfigValue]{part: "fileReservedTime", was: was, is: is}, "x"); !strings.Contains(fmt.Sprint(s.After), "pw-new") {
		t.Errorf("another key is hidden: %v", s)
	}
}
