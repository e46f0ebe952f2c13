package broker

import (
	"bytes"
	"strconv"

	"mqx/message"
)

// sendProps is what the broker needs to know of a message's properties, found
// in one pass. Values alias the raw text.
type sendProps struct {
	uniqKey  []byte
	delay    []byte
	timer    string // name of a timer property, "" for none
	lite     bool
	prepared bool // TRAN_MSG=true
	noWait   bool // WAIT=false
	replaced bool // holds a property that the broker removes or sets itself
	hasKeys  bool
	dispatch bool // INNER_MULTI_DISPATCH
	inner    bool // INNER_NUM
	priority []byte
	sharded  bool // __SHARDINGKEY
	// dropPriority: the priority does not count and is taken away (replaced is set as well).
	dropPriority bool
}

// scanProps reads the raw properties of a message.
func scanProps(raw []byte) sendProps {
	var p sendProps
	message.EachProperty(raw, func(name, value []byte) bool {
		switch string(name) {
		case message.PropUniqKey:
			p.uniqKey = value
		case message.PropDelay:
			p.delay = value
		case message.PropTimerDeliverMs, message.PropTimerDelaySec, message.PropTimerDelayMs, message.PropTimerDelUniqKey:
			p.timer = string(name)
		case message.PropTranMsg:
			p.prepared = string(bytes.ToLower(value)) == "true"
		case message.PropWait:
			p.noWait = string(value) == "false"
		case message.PropLiteTopic:
			p.lite = true
		case message.PropKeys:
			p.hasKeys = true
		case message.PropInnerMultiDispatch:
			p.dispatch = true
		case message.PropInnerNum:
			p.inner = true
		case message.PropPriority:
			p.priority = value
		case message.PropShardingKey:
			p.sharded = true
		case message.PropPopCK, message.PropMsgRegion, message.PropTraceOn, message.PropCluster:
			p.replaced = true
		}
		return true
	})
	return p
}

// delayLevel is the delay level asked for, 0 for none or nonsense, as Apache
// reads it.
func (p *sendProps) delayLevel() int {
	if p.delay == nil {
		return 0
	}
	n, err := strconv.Atoi(string(p.delay))
	if err != nil {
		return 0
	}
	return n
}

// queueByPriority is the queue that the priority of a message asks for, of those that may be written to. A message
// that is something else as well (a half or delayed one, or one with a sharding key) has no priority: then drop says that
// the property goes. A negative priority is none. (Apache looks at the message only, not at the type of its topic.)
func (p *sendProps) queueByPriority(writeQueues int32) (queue int32, ok, drop bool) {
	if p.priority == nil {
		return 0, false, false
	}
	n, err := strconv.ParseInt(string(p.priority), 10, 32)
	if err != nil || n < 0 {
		return 0, false, false
	}
	if p.prepared || p.delay != nil || p.timer != "" && p.timer != message.PropTimerDelUniqKey || p.sharded {
		return 0, false, true
	}
	return max(0, min(int32(n), writeQueues-1)), true, false
}

// half reports whether the message begins a transaction: a retry of one that
// was committed does not.
func (p *sendProps) half(reconsumeTimes int32) bool {
	return p.prepared && (reconsumeTimes <= 0 || p.delayLevel() <= 0)
}

// brokerProps are the properties that the broker adds to each message.
type brokerProps struct {
	region, traceOn, cluster string
}

// appendStored appends the properties as they are stored: those of the client
// without POP_CK and without those the broker sets, then the broker's own, and
// a unique key where there was none.
func (b *brokerProps) appendStored(dst, raw []byte, p *sendProps, newKey []byte) []byte {
	if p.replaced {
		message.EachProperty(raw, func(name, value []byte) bool {
			switch string(name) {
			case message.PropPopCK, message.PropMsgRegion, message.PropTraceOn, message.PropCluster:
				return true
			case message.PropPriority:
				if p.dropPriority {
					return true
				}
			}
			dst = appendProp(dst, name, value)
			return true
		})
	} else {
		dst = append(dst, raw...)
	}
	dst = message.AppendProperty(dst, message.PropMsgRegion, b.region)
	dst = message.AppendProperty(dst, message.PropTraceOn, b.traceOn)
	dst = message.AppendProperty(dst, message.PropCluster, b.cluster)
	if len(newKey) > 0 {
		dst = append(dst, message.PropUniqKey...)
		dst = append(dst, message.NameValueSeparator)
		dst = append(dst, newKey...)
		dst = append(dst, message.PropertySeparator)
	}
	return dst
}

func appendProp(dst, name, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, message.NameValueSeparator)
	dst = append(dst, value...)
	return append(dst, message.PropertySeparator)
}
