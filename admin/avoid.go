package admin

import "context"

type avoidKey struct{}

// Avoid makes requests to some addresses, and under this context only, fail at once with
// the error that each is given: what reads a cluster again and again need not wait for a
// broker that has just not answered. The map must not be changed afterwards.
func Avoid(ctx context.Context, addrs map[string]error) context.Context {
	if len(addrs) == 0 {
		return ctx
	}
	return context.WithValue(ctx, avoidKey{}, addrs)
}

func avoided(ctx context.Context, addr string) error {
	addrs, _ := ctx.Value(avoidKey{}).(map[string]error)
	return addrs[addr]
}
