//go:build race

package server

const recycle = false
