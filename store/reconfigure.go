package store

import (
	"fmt"
	"reflect"
)

// liveKeys are the keys that Reconfigure takes over while the store runs.
var liveKeys = map[string]bool{
	"maxMessageSize": true, "osPageCacheBusyTimeOutMills": true,
	"maxTransferBytesOnMessageInMemory": true, "maxTransferCountOnMessageInMemory": true,
	"maxTransferBytesOnMessageInDisk": true, "maxTransferCountOnMessageInDisk": true,
	"maxFilterMessageSize": true, "travelCqFileNumWhenGetMessage": true,
	"maxMsgsNumBatch": true, "defaultQueryMaxNum": true,
	"cleanResourceInterval": true, "deleteCommitLogFilesInterval": true, "deleteFileBatchMax": true, "deleteWhen": true,
	"fileReservedTime": true, "diskMaxUsedSpaceRatio": true, "diskSpaceCleanForciblyRatio": true,
	"diskSpaceWarningLevelRatio": true, "cleanFileForciblyEnable": true,
}

// IsLive reports whether a key of the configuration can change while the store runs.
func IsLive(key string) bool { return liveKeys[key] }

// Reconfigure takes over from cfg the keys that can change while the store runs: limits of messages, reads and queries,
// expiry and the watermarks of the disk. It returns the names of those that differ from what was in effect before, and of
// the others that differ and need a restart. Nothing is taken over when cfg is not valid.
func (s *Store) Reconfigure(cfg Config) (live, restart []string, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, fmt.Errorf("cannot change the store's configuration: %w", err)
	}
	s.reconfiguring.Lock()
	defer s.reconfiguring.Unlock()
	next := *s.conf()
	from, to := reflect.ValueOf(&cfg).Elem(), reflect.ValueOf(&next).Elem()
	for i := range from.NumField() {
		key := from.Type().Field(i).Tag.Get("conf")
		if key == "" || from.Field(i).Equal(to.Field(i)) {
			continue
		}
		if !liveKeys[key] {
			restart = append(restart, key)
			continue
		}
		live = append(live, key)
		to.Field(i).Set(from.Field(i))
	}
	s.live.Store(&next)
	if len(live) > 0 {
		s.disk.look() // the watermarks may be others
		signal(s.cleaner.kick)
	}
	return live, restart, nil
}

// conf is the configuration in effect now.
func (s *Store) conf() *Config { return s.live.Load() }

// hours are the hours of the day at which expired files go.
func (c *Config) hours() []int {
	hours, _ := parseHours(c.DeleteWhen) // Validate has seen it
	return hours
}
