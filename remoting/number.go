package remoting

import (
	"bytes"
	"strconv"
)

var errNotANumber = strconv.ErrSyntax

// parseInt reads a decimal number of at most bits bits.
func parseInt(b []byte, bitSize int) (int64, error) {
	if len(b) == 0 {
		return 0, errNotANumber
	}
	digits, neg := b, false
	if b[0] == '-' || b[0] == '+' {
		digits, neg = b[1:], b[0] == '-'
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, numberError(digits)
	}
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, errNotANumber
		}
		n = n*10 + uint64(c-'0')
	}
	limit := uint64(1)<<(bitSize-1) - 1
	if neg {
		if n > limit+1 {
			return 0, strconv.ErrRange
		}
		return -int64(n), nil
	}
	if n > limit {
		return 0, strconv.ErrRange
	}
	return int64(n), nil
}

func numberError(digits []byte) error {
	if len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0 {
		return strconv.ErrRange
	}
	return errNotANumber
}

// parseBool is true for "true" in any case, as in Java.
func parseBool(b []byte) bool {
	return len(b) == 4 && b[0]|0x20 == 't' && b[1]|0x20 == 'r' && b[2]|0x20 == 'u' && b[3]|0x20 == 'e'
}
