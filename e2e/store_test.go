package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What one make wrote to disk the other opens and serves: every message, at the
// same offsets, with the same content; it goes on writing, and the first make
// opens what came of it. The files are small, so that they roll.
func TestStoresAreExchanged(t *testing.T) {
	t.Parallel()
	for name, makes := range map[string][2]func(*testing.T, brokerSpec) *process{
		"mqx writes first":    {mqxBroker, apacheBroker},
		"Apache writes first": {apacheBroker, mqxBroker},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nsPort, brPort := freePort(t), freePort(t)
			namesrv := loopback(nsPort)
			mqxNameserver(t, nsPort).cleanup(t)
			spec := brokerSpec{port: brPort, namesrv: namesrv, store: filepath.Join(testDir(t, "exchange"), "store")}
			var topics []string
			before := map[string][]incoming{}
			for round, start := range []func(*testing.T, brokerSpec) *process{makes[0], makes[1], makes[0]} {
				p := start(t, spec)
				p.cleanup(t)
				waitRegistered(t, namesrv)
				for _, topic := range topics {
					waitTopic(t, namesrv, topic)
					got := byQueue(sharedDriver(t).pull(t, namesrv, topic, ""))
					if diff := cmp.Diff(before[topic], got); diff != "" {
						t.Fatalf("round %d: %s changed hands and is not the same (-before +now):\n%s", round, topic, clip(diff))
					}
				}
				checkKeyQueries(t, namesrv, before)
				if round == 2 {
					return
				}
				topics = append(topics, writeRound(t, namesrv, round)...)
				for _, topic := range topics {
					got := byQueue(sharedDriver(t).pull(t, namesrv, topic, ""))
					checkOffsets(t, got)
					before[topic] = got
				}
				checkRolled(t, spec.store)
				if err := p.stop(t, stopLimit); err != nil && strings.HasPrefix(p.name, "mqx") { // a JVM ends with 143
					t.Fatalf("round %d: %s ended with %v", round, p.name, err)
				}
				if _, err := os.Stat(filepath.Join(spec.store, "abort")); err == nil {
					t.Fatalf("round %d: the broker stopped in order and left the abort file", round)
				}
				waitGone(t, namesrv)
			}
		})
	}
}

// writeRound sends messages of every kind to topics of this round and to the
// first topic of all rounds.
func writeRound(t *testing.T, namesrv string, round int) []string {
	t.Helper()
	topic, bulk := fmt.Sprintf("E2E_STORE_%d", round), fmt.Sprintf("E2E_BULK_%d", round)
	createTopic(t, namesrv, topic, 4)
	createTopic(t, namesrv, bulk, 2)
	sendWithJava(t, namesrv, topic, kinds())
	sendWithGo(t, namesrv, topic, map[string][]outgoing{"batch": numbered("go-batch", 10), "sync": numbered("go-sync", 10)})
	filler := numbered("bulk", 150)
	for i := range filler {
		filler[i].Body += pseudoRandom(20_000, i)
		filler[i].Keys = fmt.Sprintf("bulk-%d-%d", round, i)
	}
	// Bodies that do not shrink, so that the log rolls over several files.
	sendWithJava(t, namesrv, bulk, map[string][]outgoing{"async": filler})
	want := allOf(kinds())
	waitFor(t, 30*time.Second, "one-way messages to be stored", func() (bool, string) {
		why := lost(want, sharedDriver(t).pull(t, namesrv, topic, ""))
		return why == "", why
	})
	if round == 0 {
		return []string{topic, bulk}
	}
	// The other make appends to what the first one wrote, too: those messages
	// join the topic of round 0.
	sendWithJava(t, namesrv, "E2E_STORE_0", map[string][]outgoing{"sync": numbered("appended", 20)})
	return []string{topic, bulk}
}

// pseudoRandom makes text that hardly compresses, the same for one seed.
func pseudoRandom(n, seed int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
	var b strings.Builder
	x := uint64(seed)*2654435761 + 88172645463325252
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b.WriteByte(letters[x%64])
	}
	return b.String()
}

// checkKeyQueries finds messages of the bulk topics by key, through the index
// that the other make wrote.
func checkKeyQueries(t *testing.T, namesrv string, stored map[string][]incoming) {
	t.Helper()
	for topic, messages := range stored {
		if !strings.HasPrefix(topic, "E2E_BULK_") {
			continue
		}
		for _, i := range []int{0, len(messages) / 2, len(messages) - 1} {
			m := messages[i]
			waitFor(t, 30*time.Second, "key "+m.Keys, func() (bool, string) {
				text, err := sharedDriver(t).tryAdmin("queryMsgByKey", "-t", topic, "-k", m.Keys, "-n", namesrv)
				return err == nil && strings.Count(text, "\n") == 2 && strings.Contains(text, m.MsgID), text
			})
		}
	}
}

func checkRolled(t *testing.T, store string) {
	t.Helper()
	for dir, least := range map[string]int{"commitlog": 3, "index": 1} {
		files, err := os.ReadDir(filepath.Join(store, dir))
		if err != nil || len(files) < least {
			t.Fatalf("%s holds %d files (%v), want at least %d", dir, len(files), err, least)
		}
	}
}

func clip(s string) string {
	if len(s) > 4000 {
		return s[:4000] + "\n…"
	}
	return s
}
