package ha

// CommonPointBy is CommonPoint over any connection.
var CommonPointBy = commonPoint
