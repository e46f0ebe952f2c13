// Package tui is mqx top: what a cluster does, live, from the management library.
//
// A Source reads a Snapshot; two of them give rates (rates.go), several a history
// (history.go). Views turn a snapshot into tables (view_*.go), which screen.go draws;
// model.go takes keys and asks for the next snapshot. Everything but model.go is pure:
// data and a size in, text out.
package tui
