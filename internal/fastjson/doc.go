// Package fastjson reads and writes the JSON dialect of Java's fastjson, in
// which RocketMQ keeps its bodies and configuration files: map keys that are
// numbers stand without quotes, map keys that are objects stand as objects
// (docs/wire/json.md).
package fastjson
