// Package e2e proves mqx against the peers that others wrote: the official Go
// client, Apache's Java client, its mqadmin, its name server and its broker,
// all of release 5.5.0. The Java parts come from Maven Central once (java/fetch)
// and stay in a cache outside the tree.
package e2e
