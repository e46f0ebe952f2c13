// Package pagecache empties the page cache of files and says how much of them it holds, for measurements.
package pagecache

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Evict makes files durable and puts them out of the page cache.
func Evict(names ...string) error {
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		if err != nil {
			return fmt.Errorf("cannot put %s out of the page cache: %w", name, err)
		}
	}
	return nil
}

// Share is the share of the pages of files that the page cache holds; 0 for files without bytes.
func Share(names ...string) (float64, error) {
	var pages, have uint64
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		st, err := f.Stat()
		if err == nil && st.Size() > 0 {
			var cs unix.Cachestat_t
			err = unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Len: uint64(st.Size())}, &cs, 0)
			pages += uint64(st.Size()+4095) / 4096
			have += cs.Cache
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return 0, fmt.Errorf("cannot see which pages of %s are in memory: %w", name, err)
		}
	}
	return float64(have) / float64(max(pages, 1)), nil
}
