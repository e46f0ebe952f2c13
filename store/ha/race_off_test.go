//go:build !race

package ha_test

const raced = false
