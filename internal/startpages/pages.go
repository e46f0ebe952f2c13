// Package startpages gives memory back that only the start of the process has used: the
// initialisation of packages touches code and tables all over the binary, of which a
// command then uses a part. The kernel maps the pages of a file in pieces of 64 KiB, and
// counts all of them as resident.
package startpages

import (
	"bytes"
	"strconv"
)

// highest bounds the addresses of a binary that is linked to a fixed place. One that is
// loaded anywhere has constants that were changed when it was loaded, which are not in its
// file and would be lost.
const highest = 1 << 31

// span is a range of addresses.
type span struct{ start, end uint64 }

// own are the ranges that the binary's file is mapped to and that nobody can write to, of
// the first lines of /proc/self/maps; none where it is not linked to a fixed place.
func own(maps []byte) []span {
	var out []span
	var file []byte
	for line := range bytes.Lines(maps) {
		f := bytes.Fields(line)
		if len(f) != 6 || file != nil && !bytes.Equal(f[5], file) { // a line that is cut off, or of something else
			break
		}
		file = f[5]
		from, to, _ := bytes.Cut(f[0], []byte{'-'})
		start, err1 := strconv.ParseUint(string(from), 16, 64)
		end, err2 := strconv.ParseUint(string(to), 16, 64)
		if err1 != nil || err2 != nil || end <= start || end > highest {
			break
		}
		if p := string(f[1]); p == "r-xp" || p == "r--p" {
			out = append(out, span{start, end})
		}
	}
	return out
}
