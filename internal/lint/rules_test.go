package lint

// The rooms and what each may import of this module, beside internal/*, which
// everybody may import. A room is named by its path in the module; "" is the
// root. A package that is in no row is a mistake: a new room gets a row first.
// A trailing "/..." stands for a package and everything below it.
var rooms = []struct {
	room string
	may  []string
}{
	{"", []string{"cmd"}},
	{"cmd/...", []string{"..."}},

	{"internal/...", nil},

	{"message", nil},
	{"remoting", nil},
	{"filter/...", []string{"message"}},

	{"store", []string{"message", "store/mapped", "store/commitlog", "store/consumequeue", "store/index", "store/timer"}},
	{"store/mapped", []string{"message"}},
	{"store/commitlog", []string{"message", "store/mapped"}},
	{"store/consumequeue", []string{"message", "store/mapped"}},
	{"store/index", []string{"message", "store/mapped"}},
	{"store/timer", []string{"message", "store/mapped"}},
	{"store/ha", nil},
	{"store/inspect", []string{"store", "store/mapped", "store/commitlog", "store/consumequeue", "store/index", "store/timer", "message", "filter/..."}},

	{"remoting/server", []string{"remoting"}},
	{"remoting/client", []string{"remoting"}},
	{"client/...", []string{"remoting", "remoting/client", "message"}},

	{"nameserver", []string{"remoting", "remoting/server", "remoting/client"}},
	{"broker/...", []string{"broker/...", "store", "store/ha", "filter/...", "remoting", "remoting/server", "remoting/client", "message"}},

	{"admin", []string{"admin/move", "admin/roll"}},
	{"admin/...", []string{"client/...", "remoting", "remoting/client", "message", "filter/...", "store/inspect"}},
	{"doctor/...", []string{"admin/...", "store/inspect"}},
	{"exporter/...", []string{"admin/..."}},
	{"deploy", nil},
	{"tui/...", []string{"admin/..."}},
}

// What the tests of a room may import beside that: a client's tests talk to a
// real server, and a server's tests are driven by a real client.
var testRooms = []struct {
	room string
	may  []string
}{
	{"remoting/client", []string{"remoting/server"}},
	{"remoting/server", []string{"remoting/client"}},
	{"client/...", []string{"nameserver", "broker", "remoting/server", "store"}},
	{"admin/...", []string{"nameserver", "broker", "remoting/server", "store"}},
	{"broker/...", []string{"client", "nameserver"}},
	{"doctor/...", []string{"remoting"}},
	{"store/ha", []string{"store", "message"}},
	{"exporter/...", []string{"nameserver", "broker", "client", "message", "remoting", "remoting/client", "remoting/server"}},
	{"internal/testkit", []string{"message"}},
}

// The doors of the third-party modules: the rooms that may import each of them.
// A module without a row may be imported by nobody.
var doors = []struct {
	module string
	rooms  []string
}{
	{"github.com/spf13/cobra", []string{"cmd"}},
	{"github.com/spf13/pflag", []string{"cmd"}},
	{"github.com/panjf2000/gnet/v2", []string{"remoting/server"}},
	{"github.com/edsrzf/mmap-go", []string{"store/mapped"}},
	{"github.com/olekukonko/tablewriter", []string{"internal/render"}},
	{"charm.land/bubbletea/v2", []string{"tui/..."}},
	{"charm.land/bubbles/v2", []string{"tui/..."}},
	{"charm.land/lipgloss/v2", []string{"tui/...", "internal/render"}},
	{"go.yaml.in/yaml/v3", []string{"internal/render"}},
	{"github.com/klauspost/compress", []string{"message", "remoting"}},
	{"github.com/pierrec/lz4/v4", []string{"message"}},
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"client/...", "cmd"}},
	{"github.com/prometheus/client_golang", []string{"internal/metrics"}},
	{"github.com/prometheus/client_model", []string{"internal/metrics"}},
	{"github.com/prometheus/procfs", []string{"internal/hostinfo"}},
	{"golang.org/x/term", []string{"cmd"}},
	{"gopkg.in/natefinch/lumberjack.v2", []string{"cmd"}},
	{"github.com/charmbracelet/colorprofile", []string{"tui/..."}},
	{"github.com/charmbracelet/x/ansi", []string{"tui/..."}},
	{"golang.org/x/sync", []string{"..."}},
	{"golang.org/x/sys", []string{"internal/vfs", "internal/hostinfo", "store/mapped", "remoting/server"}},
}

// Modules that any test may use, and internal/testkit.
var testDoors = []string{
	"github.com/google/go-cmp",
	"github.com/klauspost/compress",
	"github.com/rogpeppe/go-internal",
	"go.yaml.in/yaml/v3",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
}

// Names that say nothing of what a room holds.
var bannedPackageNames = []string{"util", "utils", "common", "misc", "helper", "helpers", "types"}

// A file holds one concept.
const maxFileLines = 800
