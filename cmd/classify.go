package cmd

import (
	"context"
	"errors"
	"net"
)

// classify finds the exit code of an error of the rooms below.
func classify(err error) *Failure {
	f := &Failure{Code: ExitFailed, Err: err}
	var netErr net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = ExitConnect
	case errors.As(err, &netErr):
		f.Code = ExitConnect
	}
	return f
}
