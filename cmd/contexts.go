package cmd

import (
	"context"
	"errors"
	"net"
	"time"

	"mqx/internal/contexts"
)

// contextsFile reads the contexts of this user. Where there is no home directory
// there are none.
func (a *app) contextsFile() (*contexts.File, string, error) {
	path, err := contexts.Path(a.env)
	if err != nil {
		return &contexts.File{APIVersion: contexts.APIVersion}, "", nil //nolint:nilerr // a service without a home has no contexts
	}
	f, err := contexts.Load(path)
	if bad, ok := errors.AsType[*contexts.FileError](err); ok {
		return nil, path, usagef("%w", bad).because("it says which clusters are protected, so nothing is done without it").try("correct %s", path)
	}
	return f, path, err
}

// contexts reads the contexts and finds the one that --context or MQX_CONTEXT
// names; nil when neither is given.
func (a *app) contexts() (f *contexts.File, named *contexts.Context, by string, err error) {
	f, _, err = a.contextsFile()
	if err != nil {
		return nil, nil, "", err
	}
	name, by := a.global.context, "--context"
	if name == "" {
		name, by = a.env(envContext), envContext
	}
	if name == "" {
		return f, nil, "", nil
	}
	if named = f.Get(name); named == nil {
		return nil, nil, "", noContext(f, name, by)
	}
	return f, named, by, nil
}

func noContext(f *contexts.File, name, by string) *Failure {
	e := failf(ExitNotFound, "context %s not found", name)
	if by != "" {
		e = e.because("it was named by " + by)
	}
	if near := nearest(name, f.Names()); near != "" {
		return e.try("--context %s", near)
	}
	return e.try("mqx context ls")
}

// lookupTime bounds the question whether two host names are one machine.
const lookupTime = 2 * time.Second

// lookup is the addresses of a host, nil when nobody knows them.
func (a *app) lookup(host string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	var r net.Resolver
	ips, err := r.LookupHost(ctx, host)
	if err != nil {
		return nil
	}
	return ips
}

// mayNotChange is why a cluster must not be changed, nil when it may.
func (a *app) mayNotChange(t *targetFlags) error {
	if a.global.readOnly {
		return failf(ExitDenied, "refused by --read-only").because("this would change something").try("the command without --read-only")
	}
	r, err := a.resolve(t)
	if err != nil {
		return err
	}
	if r.marks.ReadOnly != "" {
		return failf(ExitDenied, "refused: the cluster is marked read-only").because("context "+r.marks.ReadOnly+" marks it, and its name servers are these").
			try("mqx context edit %s --unmark read-only", r.marks.ReadOnly)
	}
	return nil
}

// mayWrite asks for leave to do what is no planned change: to send, or to commit
// offsets. On a protected cluster --confirm must give the name.
func (a *app) mayWrite(t *targetFlags, confirm, name string) error {
	if err := a.mayNotChange(t); err != nil {
		return err
	}
	r, err := a.resolve(t)
	if err != nil || r.marks.Protected == "" {
		return err
	}
	switch confirm {
	case name:
		return nil
	case "":
		return usagef("not confirmed, nothing was done").because("context "+r.marks.Protected+" marks the cluster protected: every change asks for the name").try("--confirm %s", name)
	}
	return usagef("cannot take --confirm %q: the name is %q", confirm, name).try("--confirm %s", name)
}
