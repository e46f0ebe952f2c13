package admin

import (
	"errors"
	"reflect"
	"testing"
)

// Controllers are those that brokers are told of; a cluster of mqx has none.
func TestControllersOfBrokers(t *testing.T) {
	server := func(name, mode, addr string) ServerConfig {
		return ServerConfig{Role: RoleBroker, Broker: Broker{Name: name}, Values: map[string]string{"enableControllerMode": mode, "controllerAddr": addr}}
	}
	addrs, brokers := controllersOf([]ServerConfig{
		server("b", "true", "10.0.0.1:9878;10.0.0.2:9878"), server("a", "true", "10.0.0.1:9878"), server("a", "true", "10.0.0.1:9878"), server("c", "false", "10.0.0.3:9878"),
	})
	if !reflect.DeepEqual(addrs, []string{"10.0.0.1:9878", "10.0.0.2:9878"}) ||
		!reflect.DeepEqual(brokers, map[string][]string{"10.0.0.1:9878": {"a", "b"}, "10.0.0.2:9878": {"b"}}) {
		t.Errorf("%v %v", addrs, brokers)
	}
	c, _, _ := offsetCluster(t)
	_, _, err := c.Controllers(t.Context(), Target{}, nil)
	if none, ok := errors.AsType[*NotFoundError](err); !ok || none.Kind != "controller" {
		t.Errorf("a cluster of mqx: %v", err)
	}
	// What does not answer is told by what it is.
	found, errs, err := c.Controllers(t.Context(), Target{}, []string{"127.0.0.1:1"})
	if err != nil || len(found) != 0 || len(errs) != 1 {
		t.Fatalf("%v %v %v", found, errs, err)
	}
	if p, ok := errors.AsType[*PeerError](errs[0].Err); !ok || p.Role != RoleController {
		t.Errorf("%v", errs[0].Err)
	}
}
