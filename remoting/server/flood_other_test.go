//go:build !linux

package server_test

func child() bool { return false }
