package admin

import "fmt"

// InvalidError says that what is asked for can never be done, whoever is asked: a
// name, a number or a combination that is none.
type InvalidError struct{ Text string }

// Error is what is wrong.
func (e *InvalidError) Error() string { return e.Text }

func invalidf(format string, args ...any) error { return &InvalidError{fmt.Sprintf(format, args...)} }
