package cmd

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"mqx/store"
)

// storeLimit is the least and, where there is one, the largest value of a flag of mqx store, the broker's own for what is a setting of a broker. 0 means that the
// flag was not given.
type storeLimit struct {
	flag  string
	least int64
	most  int64 // 0: none
	why   string
	try   string
}

// Brokers address the bytes of a file by 32 bits: a head of 40, 4 for each slot, 20 for each entry.
const (
	maxIndexSlots   = (math.MaxInt32 - 40 - 2*20) / 4
	maxIndexEntries = (math.MaxInt32 - 40 - 4) / 20
)

var storeLimits = []storeLimit{
	{"workers", 1, 0, "it is a number of files that are read at the same time", "--workers 2"},
	{"index-slots", 1, maxIndexSlots, "an index file has at least one slot (maxHashSlotNum)", "--index-slots 5000000"},
	{"index-entries", 2, maxIndexEntries, "an index file has room for at least one entry behind the first place, which stays empty (maxIndexNum)", "--index-entries 20000000"},
	{"commitlog-file-size", 4096, 0, "no broker has log files that small (mappedFileSizeCommitLog)", "--commitlog-file-size 1073741824"},
	{"consumequeue-file-size", 20, math.MaxInt32 / 20 * 20, "a unit of a queue takes 20 bytes (mappedFileSizeConsumeQueue)", "--consumequeue-file-size 6000000"},
	{"count", 1, 0, "it is a number of messages", "--count 10"},
	{"limit", 1, 0, "it is a number of rows", "--limit 10"},
}

// checkStoreFlags refuses values that no store can have, before anything is looked at.
func checkStoreFlags(c *cobra.Command, _ []string) error {
	for _, x := range storeLimits {
		f := c.Flags().Lookup(x.flag)
		if f == nil || !f.Changed {
			continue
		}
		n, err := strconv.ParseInt(f.Value.String(), 10, 64)
		if err == nil && n != 0 && n < x.least {
			return usagef("cannot use --%s %d: it must be at least %d", x.flag, n, x.least).because(x.why).try("%s", x.try)
		}
		if err == nil && x.most > 0 && n > x.most {
			return usagef("cannot use --%s %d: it must be at most %d", x.flag, n, x.most).because("no broker has files of 2 GiB or more").try("%s", x.try)
		}
	}
	if f := c.Flags().Lookup("delay-levels"); f != nil && f.Value.String() != "" {
		if _, err := store.ParseDelayLevels(f.Value.String()); err != nil {
			return usagef("cannot use --delay-levels: %w", err).because("it is messageDelayLevel of the broker").try("--delay-levels '1s 5s 10s'")
		}
	}
	return nil
}

// checkLogDirs refuses directories of --commitlog that are none.
func checkLogDirs(dirs []string) error {
	for _, dir := range dirs {
		st, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return failf(ExitNotFound, "cannot use --commitlog %q: %w", dir, err).because("there is no such directory").try("the directory that storePathCommitLog names")
		case err != nil:
			return failf(exitOfFile(err), "cannot use --commitlog %q: %w", dir, err).because("it cannot be looked at").try("the directory that storePathCommitLog names")
		case !st.IsDir():
			return usagef("cannot use --commitlog %q: it is no directory", dir).because("the files of a commit log lie in a directory").try("the directory that storePathCommitLog names")
		}
	}
	return nil
}
