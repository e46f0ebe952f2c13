package ha

// For the tests of package ha_test.
var (
	CommonPointBy = commonPoint
	AppendReport  = appendReport
)
