package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
)

// decodeOnly reads a JSON value that is all of data: a member that v does not have, and whatever
// stands behind the value, are mistakes of who wrote it.
func decodeOnly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(data[d.InputOffset():]); len(rest) > 0 {
		return errors.New("something stands behind it")
	}
	return nil
}
