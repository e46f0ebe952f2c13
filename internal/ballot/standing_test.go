package ballot

import "testing"

// Who is promoted has the newest epoch in its log, and only then the longest one (r#2178); an epoch that is not known is not the first,
// an end that is not known is before 0; a log that has parted from its master's counts up to there.
func TestStanding(t *testing.T) {
	known := func(epoch, end int64) Standing { return Standing{Epoch: &epoch, End: end} }
	unknown := func(end int64) Standing { return Standing{End: end} }
	parted := func(epoch, end, at int64) Standing { return Standing{Epoch: &epoch, End: end, Parted: &at} }
	const first, second, neither = 1, 2, 0
	for _, tt := range []struct {
		name          string
		a, b          Standing
		ahead, before int // which of them
	}{
		{"newer and shorter", known(2, 100), known(1, 900), first, first},
		{"newer and empty", known(2, 0), known(1, 900), first, first},
		{"the same epoch, longer", known(2, 200), known(2, 100), first, first},
		{"the same", known(2, 100), known(2, 100), neither, neither},
		{"from before the first promotion, longer", known(0, 900), known(1, 400), second, second},
		{"both from before the first promotion", known(0, 900), known(0, 400), first, first},
		{"an unknown epoch, longer", unknown(500), known(7, 400), first, first},
		{"an unknown epoch, shorter", unknown(300), known(0, 400), second, second},
		{"an unknown epoch, as long", unknown(400), known(0, 400), neither, neither},
		{"both unknown", unknown(500), unknown(400), first, first},
		{"an unknown end", unknown(-1), known(0, 0), second, second},
		{"unknown ends", unknown(-1), unknown(-1), neither, neither},
		{"an unknown end in a newer epoch", known(3, -1), known(2, 100), first, first},
		{"parted, longer", parted(1, 1060, 910), known(1, 970), second, second},
		{"parted, longer up to there", parted(1, 1060, 980), known(1, 970), first, first},
		{"parted, as long up to there", parted(1, 1060, 970), known(1, 970), neither, second},
		{"parted at its end", parted(1, 970, 970), known(1, 970), neither, neither},
		{"both parted", parted(1, 1060, 900), parted(1, 990, 910), second, second},
		{"parted in a newer epoch", parted(2, 1060, 50), known(1, 970), first, first},
		{"parted, its epoch unknown", Standing{End: 1060, Parted: new(int64)}, known(1, 970), second, second},
	} {
		for swapped, p := range [][2]Standing{{tt.a, tt.b}, {tt.b, tt.a}} {
			me := 1 + swapped
			if got := p[0].Ahead(p[1]); got != (tt.ahead == me) {
				t.Errorf("%s: of the two, %d is ahead: %v", tt.name, me, got)
			}
			if got := p[0].Before(p[1]); got != (tt.before == me) {
				t.Errorf("%s: of the two, %d is promoted: %v", tt.name, me, got)
			}
		}
	}
}
