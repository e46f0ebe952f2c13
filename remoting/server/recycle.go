//go:build !race

package server

// recycle says that requests and their buffers are pooled. Under the race
// detector they are not, so that it sees a request used after its answer.
const recycle = true
