package main

import "fmt"

// collidingTopics is the number of topics of each kind.
const collidingTopics = 10_000

// colliding measures sends over topics whose names all have one Java hash code against sends over as many others.
func (b *bench) colliding(p *peer) (sample, error) {
	q, err := b.newPeer(p.make, "collide")
	if err != nil {
		return nil, err
	}
	defer q.end()
	other := make([]string, collidingTopics)
	same := make([]string, collidingTopics)
	for i := range same {
		other[i] = fmt.Sprintf("SPEED_OTHER_NAMES_OF_28_%05d", i)[:28]
		same[i] = sameHash(i)
	}
	p99 := map[string]float64{}
	for _, set := range []struct {
		name   string
		topics []string
	}{{"without", other}, {"with", same}} {
		if _, err := createTopics(q, func(i int) string { return set.topics[i] }, collidingTopics, 1); err != nil {
			return nil, err
		}
	}
	for range 2 { // the first round makes the queues
		for name, topics := range map[string][]string{"without": other, "with": same} {
			args := []string{"produce", "--verify=false", "--duration", b.seconds.String()}
			for _, t := range topics {
				args = append(args, "-t", t)
			}
			load, err := q.load(q.brProc, args...)
			if err != nil {
				return nil, err
			}
			p99[name] = load["p99Ms"]
		}
	}
	return sample{"p99Ms": p99["with"], "p99Ratio": p99["with"] / p99["without"]}, nil
}

// sameHash is the i-th of names that String.hashCode of Java maps to one number: "Aa" and "BB" do, wherever they stand.
func sameHash(i int) string {
	var b []byte
	for bit := range 14 {
		b = append(b, [...]string{"Aa", "BB"}[i>>bit&1]...)
	}
	return string(b)
}
