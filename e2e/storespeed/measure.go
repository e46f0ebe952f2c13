package main

import (
	"fmt"
	"slices"
	"time"

	"mqx/e2e/pagecache"
)

// measure takes the figures and prints the table.
func (b *bench) measure() error {
	all, bytes, err := b.filesIn()
	if err != nil {
		return err
	}
	log, logBytes, err := b.filesIn("commitlog")
	if err != nil {
		return err
	}
	fmt.Printf("%.1f GiB in %d files, %.1f GiB of them the log\n\n", gib(bytes), len(all), gib(logBytes))
	fmt.Println("| row | mqx | cat | share of cat | RssAnon, most | CPU |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, r := range []struct {
		name  string
		files []string
		bytes int64
		args  []string
	}{
		{"verify", all, bytes, []string{"store", "verify", b.store, "-o", "csv"}},
		{"log --topic, 1 % of the messages", log, logBytes, []string{"store", "log", b.store, "-t", "AUDIT"}},
		{"log --topic, 25 % of the messages", log, logBytes, []string{"store", "log", b.store, "-t", "ORDERS-1"}},
	} {
		for _, state := range []string{"warm", "cold"} {
			if name := r.name + " " + state; b.rows.MatchString(name) {
				if err := b.against(name, r.files, r.bytes, state == "cold", r.args); err != nil {
					return err
				}
			}
		}
	}
	if b.rows.MatchString("find --key") {
		if err := b.find(all); err != nil {
			return err
		}
	}
	if b.rows.MatchString("beside a broker") {
		return b.beside()
	}
	return nil
}

// against measures a command against cat of the same files, in turns.
func (b *bench) against(name string, files []string, bytes int64, cold bool, args []string) error {
	var ratio, mqx, cat, anon, cpu []float64
	for range b.rounds {
		for _, prepare := range []bool{true, false} {
			if cold {
				if err := pagecache.Evict(files...); err != nil {
					return err
				}
			} else if prepare {
				if _, err := b.runs("cat", files...); err != nil {
					return err
				}
			}
			if prepare {
				o, err := b.runs("cat", files...)
				if err != nil {
					return err
				}
				cat = append(cat, gib(bytes)/o.took.Seconds())
				continue
			}
			o, err := b.runs(b.binary, args...)
			if err != nil {
				return err
			}
			mqx, anon, cpu = append(mqx, gib(bytes)/o.took.Seconds()), append(anon, o.anonMiB), append(cpu, o.cpu.Seconds())
		}
		ratio = append(ratio, mqx[len(mqx)-1]/cat[len(cat)-1])
	}
	fmt.Printf("| %s | %.2f GiB/s | %.2f GiB/s | %.2f (%.2f–%.2f) | %.0f MiB | %.1f s |\n",
		name, median(mqx), median(cat), median(ratio), slices.Min(ratio), slices.Max(ratio), slices.Max(anon), median(cpu))
	return nil
}

// find measures the whole command, with its start: once with everything cached, once with nothing.
func (b *bench) find(all []string) error {
	for _, cold := range []bool{false, true} {
		var took, anon []float64
		for i := range b.rounds * 5 {
			if cold {
				if err := pagecache.Evict(all...); err != nil {
					return err
				}
			}
			id := (i*7919 + 13) * 997 % b.messages
			o, err := b.runs(b.binary, "store", "find", b.store, "-t", topicOf(id), "--key", fmt.Sprintf("order-%d", id), "-o", "csv")
			if err != nil {
				return err
			}
			took, anon = append(took, float64(o.took)/float64(time.Millisecond)), append(anon, o.anonMiB)
		}
		state := map[bool]string{false: "warm", true: "cold"}[cold]
		fmt.Printf("| find --key, %s | %.1f ms (%.1f–%.1f) | | | %.0f MiB | |\n", state, median(took), slices.Min(took), slices.Max(took), slices.Max(anon))
	}
	return nil
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	if len(s) == 0 {
		return 0
	}
	return s[len(s)/2]
}
