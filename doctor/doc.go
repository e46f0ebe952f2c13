// Package doctor judges what is wrong: evidence in, findings out. A rule looks at what
// others gathered, of a cluster (admin.Survey), of a machine (internal/hostinfo) or of a
// store directory (store/inspect), and says what it found, by which evidence, what that
// means and which command mends it. Where the evidence of a rule is missing, it says
// that this is unknown; unknown is neither right nor wrong.
//
// The room has no I/O, no clock and no goroutine. docs/doctor.md lists the rules.
package doctor
