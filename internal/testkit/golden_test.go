package testkit

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every member of every manifest has a field, so that no test overlooks data.
func TestManifestsAreComplete(t *testing.T) {
	if got := len(GoldenStores()); got != 49 {
		t.Errorf("%d golden stores, want 49", got)
	}
	for _, variant := range GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			r, err := gzip.NewReader(bytes.NewReader(read(t, "store", variant+".manifest.json.gz")))
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(r)
			d.DisallowUnknownFields()
			var m Manifest
			if err := d.Decode(&m); err != nil {
				t.Fatal(err)
			}
			if m.Archive != variant+".tar.zst" || m.ArchiveRoot != "store/" || len(m.Files) == 0 {
				t.Errorf("archive %q, root %q, %d files", m.Archive, m.ArchiveRoot, len(m.Files))
			}
			if m.StoreView == nil && m.BeforeDamage == nil {
				t.Error("neither storeView nor beforeDamage")
			}
			first := GoldenManifest(t, variant)
			if again := GoldenManifest(t, variant); again != first {
				t.Error("manifest is read twice")
			}
		})
	}
}

// Every store unpacks to exactly the files that its manifest lists, with their sizes, times and contents.
func TestStoresUnpack(t *testing.T) {
	for _, variant := range GoldenStores() {
		t.Run(variant, func(t *testing.T) {
			root := GoldenStore(t, variant)
			left := map[string]File{}
			for _, f := range GoldenManifest(t, variant).Files {
				left[f.Path] = f
			}
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				rel, err := filepath.Rel(root, path)
				if err != nil {
					return err
				}
				want, ok := left[filepath.ToSlash(rel)]
				if !ok {
					if rel != "lock" {
						t.Errorf("file %s is not in the manifest", rel)
					}
					return nil
				}
				delete(left, want.Path)
				checkFile(t, path, want)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range slices.Sorted(maps.Keys(left)) {
				t.Errorf("file %s is not in the archive", path)
			}
		})
	}
}

func checkFile(t *testing.T, path string, want File) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != want.Size {
		t.Errorf("%s has %d bytes, want %d", want.Path, len(b), want.Size)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want.SHA256 {
		t.Errorf("%s has other content", want.Path)
	}
	if got := st.ModTime().UnixMilli(); got/1000 != want.Mtime/1000 {
		t.Errorf("%s was modified at %d, want %d", want.Path, got, want.Mtime)
	}
}

func TestCommitLogFrom(t *testing.T) {
	root := GoldenStore(t, "roll")
	log := GoldenCommitLog(t, root)
	for _, r := range GoldenManifest(t, "roll").StoreView.CommitLogRecords {
		b := log.From(r.Offset())
		if len(b) < 8 || int64(binary.BigEndian.Uint32(b)) != r.Len() {
			t.Fatalf("no record of %d bytes at %d", r.Len(), r.Offset())
		}
	}
	if log.From(0) != nil {
		t.Error("a deleted file can be read")
	}
}

func TestWiresParse(t *testing.T) {
	kinds := map[string]int{}
	for _, name := range GoldenWires() {
		frames := GoldenWire(t, name)
		if len(frames) == 0 {
			t.Errorf("%s is empty", name)
		}
		for _, f := range frames {
			kinds[f.Kind]++
			if f.Kind == WireFrameKind && int(binary.BigEndian.Uint32(f.Raw))+4 != f.Len {
				t.Errorf("%s seq %d: frame length does not match", name, f.Seq)
			}
		}
	}
	for _, kind := range []string{WireOpen, WireEOF, WireFrameKind, WireHAReport, WireHATransfer, WireMark} {
		if kinds[kind] == 0 {
			t.Errorf("no record of kind %s", kind)
		}
		delete(kinds, kind)
	}
	if len(kinds) != 0 {
		t.Errorf("unknown kinds %v", kinds)
	}
	if out := GoldenWireStdout(t, "go_pull_JSON"); len(out) == 0 {
		t.Error("client printed nothing")
	}
}

func TestMqadminsParse(t *testing.T) {
	for _, name := range slices.Concat(GoldenMqadmins(), GoldenAuthMqadmins()) {
		args, output := GoldenMqadmin(t, name)
		if args == "" && !strings.Contains(name, "help") && !strings.Contains(name, "unknown") {
			t.Errorf("%s: no arguments", name)
		}
		if bytes.HasPrefix(output, []byte("#completed")) || bytes.HasPrefix(output, []byte("# completed")) {
			t.Errorf("%s: output begins with the comment", name)
		}
	}
	args, output := GoldenMqadmin(t, "003_clusterList")
	if args != "clusterList -n 127.0.0.2:30076" || !bytes.HasPrefix(output, []byte("#Cluster Name ")) {
		t.Errorf("clusterList: %q, %q", args, output)
	}
	if !json.Valid(GoldenFile(t, "mqadmin/cluster.json")) {
		t.Error("cluster.json is not JSON")
	}
}
