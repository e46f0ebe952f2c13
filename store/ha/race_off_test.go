//go:build !race

package ha

const Raced = false
