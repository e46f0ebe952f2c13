package cmd

import (
	"os"
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var offsetsAge = regexp.MustCompile(`process [1-9][0-9]* has it open: offsets are those of (\S+), when it wrote them down; mqx admin offset get has them`)

// offsetsAreOf asks store offsets of a running broker for a warning with the time at which the file of offsets was written:
// aged DIR FILE.
func offsetsAreOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: aged DIR FILE")
	}
	written := func() string {
		st, err := os.Stat(ts.MkAbs(args[1]))
		ts.Check(err)
		return st.ModTime().Format(time.RFC3339)
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		before := written()
		code, _, errOut := runMqx(ts, []string{"store", "offsets", args[0]})
		said := offsetsAge.FindSubmatch(errOut)
		if code != 0 || said == nil {
			ts.Fatalf("exit code %d, nothing about the age of the offsets: %s", code, errOut)
		}
		at, err := time.Parse(time.RFC3339, string(said[1]))
		ts.Check(err)
		switch is := at.Local().Format(time.RFC3339); {
		case is == before:
			return
		case written() == before || time.Now().After(deadline): // else it was written meanwhile
			ts.Fatalf("offsets are said to be of %s, the file is of %s", is, before)
		}
	}
}
