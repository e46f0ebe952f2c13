// Package lint holds the rules about the source tree itself as tests: who may
// import whom, which room a third-party library lives in, how long a file may
// be, and that the tree refers to nothing outside itself. It has no code of its
// own.
package lint
