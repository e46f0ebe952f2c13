// Package ballot numbers the promotions of a broker group.
package ballot

// step is the distance of two rounds, and so the number of brokers of a group whose epochs never meet.
const step = 1000

// Next is the epoch of a promotion of the broker with a number, 0 or above: in the round behind the newest epoch that is known, 0
// for none, and there the one that is that broker's. A broker that was promoted, and lost its power before anybody heard of
// it, has an epoch that nobody counts in: what is known plus one might be the same one, of two masters of which none gives way.
func Next(known, number int64) int64 {
	round := (max(0, known) + step - 1) / step
	return round*step + 1 + (max(0, number)+step-1)%step
}
