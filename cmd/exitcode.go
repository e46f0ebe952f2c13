package cmd

// Exit is the exit code of a command. The table below is the only place where
// codes are given a meaning; `mqx help exit-codes` prints it.
type Exit int

// Exit codes.
const (
	ExitOK          Exit = 0
	ExitFailed      Exit = 1
	ExitUsage       Exit = 2
	ExitPartial     Exit = 3
	ExitDenied      Exit = 4
	ExitConnect     Exit = 5
	ExitCheckFailed Exit = 6
	ExitNotFound    Exit = 7
	ExitWaited      Exit = 8
	ExitInterrupted Exit = 130

	// exitPipe is what a shell says of a command that was ended by SIGPIPE; no command returns it.
	exitPipe Exit = 141
)

// exitMeaning is one row of the exit-code table.
type exitMeaning struct {
	Code    Exit
	Name    string
	Meaning string
}

var exitTable = []exitMeaning{
	{ExitOK, "ok", "done, or already so"},
	{ExitFailed, "failed", "the command failed"},
	{ExitUsage, "usage", "wrong usage, or a confirmation is missing"},
	{ExitPartial, "partial", "some of what was asked for is missing; each missing part is named in errors"},
	{ExitDenied, "denied", "the server refused: no permission"},
	{ExitConnect, "connect", "cannot connect, or no answer in time"},
	{ExitCheckFailed, "check", "a check failed: a difference, a finding, something unsafe"},
	{ExitNotFound, "not-found", "what was named does not exist"},
	{ExitWaited, "waited", "waited in vain"},
	{ExitInterrupted, "interrupted", "interrupted by a signal"},
	{exitPipe, "pipe", "whoever read the output (head, less) left before all of it was written: ended by SIGPIPE, whatever it was about to say; set -o pipefail sees it"},
}
