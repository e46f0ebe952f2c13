package cmd

import (
	"slices"
	"testing"

	"mqx/internal/hostinfo"
)

func TestLogsOfAServer(t *testing.T) {
	got := logsOf("/var/lib/mqx", []hostinfo.OpenFile{
		{FD: 1, Path: "/var/log/mqx.out"},
		{FD: 2, Path: "/var/log/mqx.out"},
		{FD: 5, Path: "/var/lib/mqx/commitlog/00000000000000000000"},
		{FD: 6, Path: "/home/mq/logs/rocketmqlogs/broker.log"},
		{FD: 7, Path: "/usr/lib/jvm/modules"},
		{FD: 8, Path: "/var/lib/mqx/x.log"},
	})
	if want := []string{"/var/log/mqx.out", "/home/mq/logs/rocketmqlogs/broker.log"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	command := []string{"mqx", "broker", "start", "--pprof=127.0.0.1:6060", "--log-file", "b.log"}
	if flagOf(command, "--pprof") != "127.0.0.1:6060" || flagOf(command, "--log-file") != "b.log" || flagOf(command, "--store") != "" || flagOf(command, "b.log") != "" {
		t.Errorf("flags of %v", command)
	}
}
