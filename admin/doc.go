// Package admin is the management client as a library: it reads and changes topics
// and consumer groups of a live cluster, mqx's own or Apache's. It prints nothing.
//
// Reading asks many brokers; a broker that does not answer is an entry in Errors, not
// an empty list (a partial result). A change is planned first: a plan reads the state
// of every target and says what would happen, Apply does it and reads it back.
package admin
