package doctor

import "slices"

// rules are all rules, in the order in which they are asked.
var rules = slices.Concat(
	nameServerRules, brokerRules, diskRules, putRules, lagRules, groupRules, offsetRules, topicRules, waitingRules, connectionRules,
	loadRules, kernelRules, profileRules, storeRules,
)
