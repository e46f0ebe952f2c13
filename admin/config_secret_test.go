package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// A plan in which one key of several is a secret, be it the value that goes, is not carried
// out from its written form as if it were whole.
func TestSavedPlanWithoutItsSecret(t *testing.T) {
	k := brokerConfigCells
	const secret = "initAuthenticationUser"
	p := &cellPlan[ConfigValue]{k: k, object: "keys", cells: []cell[ConfigValue]{
		{part: "fileReservedTime", was: &ConfigValue{Value: "72"}, is: &ConfigValue{Value: "24"}},
		{part: secret, was: &ConfigValue{Value: "pw-old"}, is: &ConfigValue{}},
	}}
	if got := Secrets(p); !slices.Equal(got, []string{secret}) {
		t.Errorf("Secrets = %q", got)
	}
	saved, err := json.Marshal(p.Saved())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(saved), "pw-") {
		t.Errorf("written down: %s", saved)
	}
	_, err = (&Client{}).Replan(t.Context(), k.kind, saved)
	if e, ok := errors.AsType[*SecretPlanError](err); !ok || !slices.Equal(e.Parts, []string{secret}) {
		t.Errorf("Replan: %v", err)
	}
}
