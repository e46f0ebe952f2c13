package cmd

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"mqx/admin"
	"mqx/client"
	"mqx/message"
	"mqx/remoting"
)

// addedLast are the properties that a broker adds, and the pull of a client: they stand behind the others.
var addedLast = []string{message.PropMsgRegion, message.PropTraceOn, message.PropCluster, message.PropMinOffset, message.PropMaxOffset}

// javaProperties are properties as Java prints the map that its clients decode them into.
func javaProperties(properties map[string]string) string {
	first := maps.Clone(properties)
	for _, name := range addedLast {
		delete(first, name)
	}
	raw := message.FormatProperties(first)
	for _, name := range addedLast {
		if value := properties[name]; value != "" {
			raw = message.AppendProperty(raw, name, value)
		}
	}
	var parts []string
	message.EachProperty(message.AppendJavaOrder(nil, raw), func(name, value []byte) bool {
		parts = append(parts, string(name)+"="+string(value))
		return true
	})
	return "{" + strings.Join(parts, ", ") + "}"
}

// javaMessage is a message as Java prints it.
func javaMessage(m *client.Received) string {
	body := make([]string, len(m.Body))
	for i, b := range m.Body {
		body[i] = fmt.Sprint(int8(b))
	}
	return javaMessageOf(m, "["+strings.Join(body, ", ")+"]")
}

// javaMessageOf is javaMessage with the body as it is to be said.
func javaMessageOf(m *client.Received, body string) string {
	host := func(text string) string { return "/" + text }
	return fmt.Sprintf("MessageExt [brokerName=%s, queueId=%d, storeSize=%d, queueOffset=%d, sysFlag=%d, bornTimestamp=%d, bornHost=%s, storeTimestamp=%d, storeHost=%s, msgId=%s, "+
		"commitLogOffset=%d, bodyCRC=%d, reconsumeTimes=%d, preparedTransactionOffset=%d, toString()=Message{topic='%s', flag=%d, properties=%s, body=%s, transactionId='%s'}]",
		m.Queue.BrokerName, m.QueueID, m.Size, m.QueueOffset, m.SysFlag, m.BornTimestamp, host(m.BornHost.String()), m.StoreTimestamp, host(m.StoreHost.String()), m.OffsetID,
		m.PhysicalOffset, m.BodyCRC&0x7FFFFFFF, m.ReconsumeTimes, m.PreparedTransactionOffset, m.Topic, m.Flag, javaProperties(m.Properties), body, javaNull(m.Property(message.PropTransactionID)))
}

func javaNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

// apacheMillis is a time as Apache's tool writes it, in the time zone of this machine.
func apacheMillis(ms int64) string {
	return time.UnixMilli(ms).Local().Format("2006-01-02 15:04:05,000")
}

// printApacheMessage writes a message in lines with labels; offsetID says whether the first one is there.
func (a *app) printApacheMessage(m *client.Received, offsetID, text bool, bodyPath string) error {
	m = a.redacted(m)
	lines := [][2]string{
		{"OffsetID:", m.OffsetID},
		{"Topic:", m.Topic},
		{"Tags:", "[" + javaNull(m.Tags()) + "]"},
		{"Keys:", "[" + javaNull(m.Property(message.PropKeys)) + "]"},
		{"Queue ID:", fmt.Sprint(m.QueueID)},
		{"Queue Offset:", fmt.Sprint(m.QueueOffset)},
		{"CommitLog Offset:", fmt.Sprint(m.PhysicalOffset)},
		{"Reconsume Times:", fmt.Sprint(m.ReconsumeTimes)},
		{"Born Timestamp:", apacheMillis(m.BornTimestamp)},
		{"Store Timestamp:", apacheMillis(m.StoreTimestamp)},
		{"Born Host:", m.BornHost.String()},
		{"Store Host:", m.StoreHost.String()},
		{"System Flag:", fmt.Sprint(m.SysFlag)},
		{"Properties:", javaProperties(m.Properties)},
		{"Message Body Path:", bodyPath},
	}
	if text {
		lines = append(lines, [2]string{"Message Body:", string(m.Body)})
	}
	if !offsetID {
		lines = lines[1:]
	}
	for _, l := range lines {
		if err := a.printf("%-20s %s\n", l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}

// redacted is a message without its body and the values of its properties, where that is asked for.
func (a *app) redacted(m *client.Received) *client.Received {
	if !a.redact {
		return m
	}
	out := *m
	out.Body, out.Properties = []byte(hidden), map[string]string{}
	for k := range m.Properties {
		out.Properties[k] = hidden
	}
	return &out
}

// apacheBodyDir is where Apache's tool leaves bodies, whoever reads them then.
const apacheBodyDir = "/tmp/rocketmq/msgbodys"

// saveApacheBody leaves the body in a file, as Apache's tool does: for this user alone, and not through a link that
// somebody has put there. The id comes from whoever sent the message.
func saveApacheBody(m *client.Received) (string, error) {
	if err := os.MkdirAll(apacheBodyDir, 0o700); err != nil {
		return "", fmt.Errorf("cannot save body: %w", err)
	}
	dir, err := os.OpenRoot(apacheBodyDir)
	if err != nil {
		return "", fmt.Errorf("cannot save body: %w", err)
	}
	defer func() { _ = dir.Close() }()
	name := m.MessageID
	if _, err := message.ParseUniqueID(name); err != nil {
		name = m.OffsetID
	}
	_ = dir.Remove(name) // of an earlier run; if it cannot be removed, it cannot be made
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("cannot save body: %w", err)
	}
	_, err = f.Write(m.Body)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("cannot save body: %w", err)
	}
	return apacheBodyDir + "/" + name, nil
}

// apacheTrack is a track in the words of Apache's tool, which looks at the offset only when somebody is online.
func apacheTrack(t *admin.Track, offset int64) string {
	kind, why := "UNKNOWN", "null"
	passed := t.Committed != nil && *t.Committed > offset
	switch {
	case t.Err != nil:
		why = oneLine(t.Err.Error())
	case !t.Online:
		kind, why = "NOT_ONLINE", fmt.Sprintf("CODE:%d DESC:the consumer group[%s] not online", remoting.RespConsumerNotOnline, t.Group)
	case t.Type == remoting.ConsumeActively:
		kind = "PULL"
	case t.Model == remoting.Broadcasting:
		kind = "CONSUME_BROADCASTING"
	case t.Type == remoting.ConsumePop:
	case !passed:
		kind = "NOT_CONSUME_YET"
	case t.State == admin.TrackFiltered:
		kind = "CONSUMED_BUT_FILTERED"
	default:
		kind = "CONSUMED"
	}
	return fmt.Sprintf("MessageTrack [consumerGroup=%s, trackType=%s, exceptionDesc=%s]", t.Group, kind, why)
}

// apacheWhen reads a time as Apache's tool takes it: ms, or yyyy-MM-dd#HH:mm:ss:SSS.
func apacheWhen(option, text string) (time.Time, error) {
	var ms int64
	if _, err := fmt.Sscanf(text+"\n", "%d\n", &ms); err == nil && fmt.Sprint(ms) == text {
		return time.UnixMilli(ms), nil
	}
	if i := strings.LastIndexByte(text, ':'); i > 0 {
		if t, err := time.ParseInLocation("2006-01-02#15:04:05.000", text[:i]+"."+text[i+1:], time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("cannot use --%s %q: a time is a number of milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS", option, text).try("--%s 2026-01-02#15:04:05:000", option)
}

// apacheBool is true for "true", as Java reads it.
func apacheBool(text string) bool { return strings.EqualFold(strings.TrimSpace(text), "true") }

// onlyUTF8 refuses other character sets.
func onlyUTF8(option, name string) error {
	switch strings.ToUpper(strings.ReplaceAll(name, "_", "-")) {
	case "", "UTF-8", "UTF8", "US-ASCII", "ASCII":
		return nil
	}
	return usagef("cannot use --%s %s: bodies are written as UTF-8", option, name).try("mqx admin message get ID --body hex, or iconv")
}
