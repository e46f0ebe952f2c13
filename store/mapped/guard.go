package mapped

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrFault is returned when mapped memory could not be read, because the file is shorter than it was when it was
// mapped, or because the device could not deliver it.
var ErrFault = errors.New("mapped memory is gone")

// Guard runs f and turns a fault on mapped memory in it, in this goroutine, into ErrFault. Other panics pass.
func Guard(f func() error) (err error) {
	defer Unguard(SetGuard(), &err)
	return f()
}

// SetGuard and Unguard are Guard for a function that does not want a closure: its first statement is
//
//	defer mapped.Unguard(mapped.SetGuard(), &err)
//
// with err its named result.
func SetGuard() (was bool) { return debug.SetPanicOnFault(true) }

// Unguard ends what SetGuard began. It must be deferred itself.
func Unguard(was bool, err *error) {
	debug.SetPanicOnFault(was)
	if r := recover(); r != nil {
		*err = faultOrPanic(r)
	}
}

// faultOrPanic returns the error for a fault and goes on with any other panic.
func faultOrPanic(r any) error {
	fault, ok := r.(interface {
		error
		Addr() uintptr
	})
	if !ok {
		panic(r)
	}
	return fmt.Errorf("%w (address %#x)", ErrFault, fault.Addr())
}

func guardedCopy(dst, src []byte) (err error) {
	defer Unguard(SetGuard(), &err)
	copy(dst, src)
	return nil
}
