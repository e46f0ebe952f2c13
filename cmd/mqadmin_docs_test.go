package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// apacheCommands are the 96 commands of mqadmin 5.5.0 in its groups.
var apacheCommands = []struct{ group, names string }{
	{"Topics", "updateTopic updateTopicList deleteTopic updateTopicPerm topicRoute topicStatus topicClusterList topicList updateOrderConf allocateMQ"},
	{"Groups", "updateSubGroup updateSubGroupList setConsumeMode deleteSubGroup consumerProgress consumerStatus startMonitoring getConsumerConfig"},
	{"Connections", "producerConnection consumerConnection producer"},
	{"Brokers", "updateBrokerConfig resetMasterFlushOffset brokerStatus sendMsgStatus brokerConsumeStats cleanExpiredCQ deleteExpiredCommitLog cleanUnusedTopic getBrokerConfig " +
		"getBrokerEpoch getColdDataFlowCtrInfo updateColdDataFlowCtrGroupConfig removeColdDataFlowCtrGroupConfig setCommitLogReadAheadMode switchTimerEngine"},
	{"Messages", "queryMsgById queryMsgByKey queryMsgByUniqueKey queryMsgByOffset queryMsgTraceById printMsg printMsgByQueue checkMsgSendRT sendMessage consumeMessage dumpCompactionLog"},
	{"Clusters", "clusterList clusterRT"},
	{"Name servers", "updateKvConfig deleteKvConfig wipeWritePerm addWritePerm getNamesrvConfig updateNamesrvConfig"},
	{"Controllers", "getControllerMetaData getControllerConfig updateControllerConfig electMaster cleanBrokerMetadata"},
	{"Offsets", "cloneGroupOffset resetOffsetByTime skipAccumulatedMessage"},
	{"Queues", "queryCq checkRocksdbCqWriteProgress"},
	{"Exports", "exportMetadata exportConfigs exportMetrics exportMetadataInRocksDB exportPopRecord rocksDBConfigToJson"},
	{"Users and policies", "createUser updateUser deleteUser getUser listUser copyUser createAcl updateAcl deleteAcl getAcl listAcl copyAcl"},
	{"Replication", "haStatus getSyncStateSet"},
	{"Static topics", "updateStaticTopic remappingStaticTopic"},
	{"Statistics", "statsAll"},
	{"Containers", "addBroker removeBroker"},
	{"Lite topics", "getBrokerLiteInfo getParentTopicInfo getLiteTopicInfo getLiteClientInfo getLiteGroupInfo triggerLiteDispatch"},
}

// docs/mqadmin.md says of each of the 96 names how mqx spells it, or why it is not
// there.
func TestMqadminTableIsFresh(t *testing.T) {
	root := newRootCmd(&app{env: func(string) string { return "" }})
	parent, _, err := root.Find([]string{"mqadmin"})
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]string{}
	for _, c := range parent.Commands() {
		if text, ok := c.Annotations[oursAnnotation]; ok {
			ours[c.Name()] = text
		}
	}
	var b strings.Builder
	served, known := 0, map[string]bool{}
	for _, g := range apacheCommands {
		fmt.Fprintf(&b, "\n## %s\n\n| mqadmin | mqx |\n|---|---|\n", g.group)
		for name := range strings.FieldsSeq(g.names) {
			known[name] = true
			text, there := ours[name]
			why, later := mqadminLater[name]
			never, unserved := mqadminNever[name]
			switch {
			case there == (later || unserved):
				t.Errorf("%s: served %v, later %v, never %v", name, there, later, unserved)
			case unserved:
				fmt.Fprintf(&b, "| %s | not served: %s |\n", name, never)
			case there:
				served++
				fmt.Fprintf(&b, "| %s | `%s` |\n", name, strings.ReplaceAll(text, "|", `\|`))
			case why == "":
				fmt.Fprintf(&b, "| %s | not served yet |\n", name)
			default:
				fmt.Fprintf(&b, "| %s | not served yet; `%s` does the same |\n", name, strings.ReplaceAll(why, "|", `\|`))
			}
		}
	}
	for name := range ours {
		if !known[name] {
			t.Errorf("mqadmin 5.5.0 has no command %s", name)
		}
	}
	if len(known) != 96 {
		t.Errorf("%d names, want 96", len(known))
	}
	fmt.Fprintf(&b, "\n%d of %d are served.\n", served, len(known))
	path := filepath.Join("..", "docs", "mqadmin.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, kept, ok := strings.Cut(string(text), fieldsMark)
	if !ok {
		t.Fatalf("%s has no line %q", path, fieldsMark)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+fieldsMark+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		kept = b.String()
	}
	if diff := cmp.Diff(b.String(), kept); diff != "" {
		t.Errorf("%s is not what the commands say: go test ./cmd -run Fresh -update (-commands +file):\n%.2000s", path, diff)
	}
}
