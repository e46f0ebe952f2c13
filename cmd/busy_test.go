package cmd

import "testing"

// N132: what a busy machine answers and what a busy broker answers are told apart, in both languages: a request that was
// refused for its queue, one that waited too long in it, and one that found the log held.
func TestBusyIsToldApart(t *testing.T) {
	for _, lang := range []string{"en", "zh"} {
		seen := map[string]string{}
		for _, text := range []string{
			"[OVERLOAD]system busy, start flow control for a while, stage: send, wait: 3ms",
			"[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, stage: queued, period in queue: 201ms, size of queue: 0",
			"[PC_SYNCHRONIZED]broker busy, start flow control for a while",
			"[REJECTREQUEST]system busy, start flow control for a while",
		} {
			rows := explainText(text, lang)
			if len(rows) == 0 {
				t.Errorf("%s: %q is not explained", lang, text)
				continue
			}
			key := ""
			for _, v := range rows[0][2:] {
				if s, ok := v.(string); ok {
					key += s + "\n"
				}
			}
			if other := seen[key]; other != "" {
				t.Errorf("%s: %q and %q have one explanation: %s", lang, text, other, key)
			}
			seen[key] = text
		}
	}
}
