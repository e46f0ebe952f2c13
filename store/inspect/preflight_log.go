package inspect

import (
	"errors"
	"fmt"
	"slices"

	"mqx/internal/words"
	"mqx/message"
)

// recordTraits count records that not every version and client understands, in a part of the log.
type recordTraits struct {
	v2, batch, lz4, zstd, propCRC, v6, lmq int64
	firstV2                                int64 // position of the first record of version 2
	beforeV2                               int64 // readable records of the part before it
}

// see counts a record; before are the readable ones of the part so far.
func (s *recordTraits) see(v message.View, before int64, lmq bool) {
	flags := v.SysFlag()
	if v.Magic() == message.MagicV2 {
		if s.v2 == 0 {
			s.firstV2, s.beforeV2 = v.PhysicalOffset(), before
		}
		s.v2++
	}
	if flags&message.FlagInnerBatch != 0 {
		s.batch++
	}
	if flags&message.FlagCompressed != 0 {
		switch message.CompressionOf(flags) {
		case message.CompressionLZ4:
			s.lz4++
		case message.CompressionZstd:
			s.zstd++
		case message.CompressionLegacy, message.CompressionZlib:
		}
	}
	if flags&(message.FlagBornHostV6|message.FlagStoreHostV6) != 0 {
		s.v6++
	}
	if message.HasPropCRC(v) {
		s.propCRC++
	}
	if lmq {
		s.lmq++
	}
}

func (s *recordTraits) add(o *recordTraits) {
	s.v2 += o.v2
	s.batch += o.batch
	s.lz4 += o.lz4
	s.zstd += o.zstd
	s.propCRC += o.propCRC
	s.v6 += o.v6
	s.lmq += o.lmq
}

// records tells of what Verify has counted.
func (p *preflight) records() error {
	s := &p.seen
	for _, f := range p.report.v.present() {
		for _, c := range f.chunks {
			s.add(&c.traits)
		}
	}
	if n := s.batch; n > 0 && p.old() && !p.d.Has(KindBatchQueues) {
		p.add(RiskMisuse, "inner-batch", nameCommitLog, n, "records that hold a batch take one offset for all of its messages", "Apache RocketMQ 5")
	}
	if n := s.lz4 + s.zstd; n > 0 {
		p.note("compression", nameCommitLog, fmt.Sprintf("%s compressed with LZ4 or ZSTD: the broker passes them on as they are, and clients before 4.9.4 cannot read them", words.Count(n, "body is", "bodies are")), "")
	}
	if n := s.v6; n > 0 {
		p.note("ipv6", nameCommitLog, fmt.Sprintf("%s an IPv6 address: clients before 4.7 cannot read them", words.Count(n, "record has", "records have")), "")
	}
	if n := s.propCRC; n > 0 && p.apache() {
		p.note("prop-crc", nameCommitLog, fmt.Sprintf("%s a checksum of their own: compared only with forceVerifyPropCRC, which 4.9 does not have", words.Count(n, "record carries", "records carry")), "")
	}
	if n := s.lmq; n > 0 {
		risk, what := RiskNote, "enableLmq and enableMultiDispatch have to be true, or light queues do not go on"
		if p.o.Conf != nil && p.on("enableLmq") && p.on("enableMultiDispatch") {
			what = "light queues go on"
		}
		p.add(risk, "light-queues", nameCommitLog, n, what, "")
	}
	return nil
}

// errUnknownMagic is what a version says of a record that it does not know.
var errUnknownMagic = errors.New("a record of version 2, which this version does not know")

// recoveryStart is the file from which a target reads the log when it starts.
func (p *preflight) recoveryStart() (int64, error) {
	files := p.d.log.files
	if len(files) == 0 {
		return 0, nil
	}
	newest := p.o.Target == TargetApache55 || !p.apache() // uses the position in the checkpoint
	if !p.d.in.Abort {
		if p.old() {
			return files[max(len(files)-3, 0)].Start, nil
		}
		reach, err := p.queuesReach()
		if err != nil {
			return 0, err
		}
		return p.backTo(func(v message.View) bool { return v.PhysicalOffset() <= reach }, recoverFilesMax)
	}
	c, ok, err := p.d.Checkpoint()
	if err != nil {
		return 0, err
	}
	if !ok {
		return files[0].Start, nil
	}
	if newest && c.LogicsPhysOffset > 0 {
		return p.backTo(func(v message.View) bool { return v.PhysicalOffset() <= c.LogicsPhysOffset }, recoverFilesMax)
	}
	limit := min(c.PhysicTime, c.LogicsTime) - checkpointSlackMs
	most := len(files)
	if newest {
		most = recoverFilesMax
	}
	return p.backTo(func(v message.View) bool { return v.StoreTimestamp() > 0 && v.StoreTimestamp() <= limit }, most)
}

const (
	recoverFilesMax   = 10   // commitLogRecoverMaxNum
	checkpointSlackMs = 3000 // what Apache takes off the times of the checkpoint
)

// backTo goes back from the newest file to one whose first record fulfils a condition, at most so many files.
func (p *preflight) backTo(ok func(message.View) bool, most int) (int64, error) {
	files := p.d.log.files
	for n := len(files) - 1; n >= 0 && most > 0; n, most = n-1, most-1 {
		v, err := p.d.log.Record(files[n].Start)
		if errors.Is(err, ErrNoRecord) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if ok(v) {
			return files[n].Start, nil
		}
		if most == 1 {
			return files[n].Start, nil
		}
	}
	return files[0].Start, nil
}

// queuesReach is the position of the newest record that a queue points to, -1 for none.
func (p *preflight) queuesReach() (int64, error) {
	keys, err := p.d.Queues()
	if err != nil {
		return 0, err
	}
	reach := int64(-1)
	for _, k := range keys {
		q, err := p.d.Queue(k)
		if err != nil {
			continue // gone meanwhile
		}
		e, err := q.Ends(p.ctx)
		if err != nil {
			return 0, err
		}
		reach = max(reach, e.LastPhys)
	}
	return reach, nil
}

// cut is where the start of the target ends the log, if it begins to read at start, and -1 if it reads all of it. behind are
// the readable records that it cuts, broken the places that are none and that it does not come to.
func (p *preflight) cut(start int64) (at, behind, broken int64, why error) {
	v := p.report.v
	at = -1
	var cause *logBreak
	for _, b := range v.breaks {
		switch {
		case b.kind != FindLogRot && b.kind != FindLogMisplaced, served(b.why), errors.Is(b.why, ErrEmptyFile):
		case b.from < start:
			broken++
		case !p.apache():
			p.note("broken-record", p.d.Rel(b.path), fmt.Sprintf("no readable record from %d to %d: the broker passes over it when it starts", b.from, b.to), "")
		case at < 0:
			at, why, cause = b.from, b.why, b
		}
	}
	for _, f := range v.present() {
		for _, c := range f.chunks {
			if t := &c.traits; p.old() && f.Start >= start && t.v2 > 0 && (at < 0 || t.firstV2 < at) {
				at, why, cause = t.firstV2, errUnknownMagic, &logBreak{before: t.beforeV2}
			}
			switch {
			case at < 0 || c.to <= at:
			case c.from > at:
				behind += c.readable()
			case errors.Is(why, errUnknownMagic) || slices.Contains(c.breaks, cause):
				behind += c.readable() - cause.before
			}
		}
	}
	return at, behind, broken, why
}

// served reports whether brokers take a record for whole that Verify finds wrong: they compare its frame and the checksum
// of its body.
func served(why error) bool {
	c, ok := errors.AsType[*message.CorruptError](why)
	return ok && c.What == message.CorruptPropCRC || errors.Is(why, errSector) || errors.Is(why, errListable)
}

// recovery finds what the target's start does to the log: Apache's ends the log at the first record that it does not
// take, and cuts everything behind it, wherever it begins to read; what it does not read it serves as it is. mqx passes
// over broken records.
func (p *preflight) recovery() error {
	start, err := p.recoveryStart()
	if err != nil {
		return err
	}
	cutAt, behind, broken, why := p.cut(start)
	if cutAt >= 0 {
		kind := "log-cut"
		if errors.Is(why, errUnknownMagic) {
			kind = "record-v2"
		}
		p.add(RiskLoss, kind, nameCommitLog, behind, fmt.Sprintf("the broker ends the log at %d (%v) and cuts %d readable records behind it", cutAt, why, behind), "mqx store repair, on a copy")
	} else if n := p.seen.v2; n > 0 && p.old() {
		p.add(RiskMisuse, "record-v2", nameCommitLog, n, "records of version 2 (topics of more than 127 characters), which this version does not know, are not served", "Apache RocketMQ 5")
	}
	if broken > 0 {
		p.add(RiskMisuse, "broken-record", nameCommitLog, broken, "broken records that the start does not come to are served as they are, or end a pull", "mqx store repair")
	}
	return nil
}
