package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func open(t *testing.T) *Journal {
	t.Helper()
	dir := t.TempDir()
	j, err := Open(func(name string) string { return map[string]string{"XDG_STATE_HOME": dir}[name] })
	if err != nil {
		t.Fatal(err)
	}
	return j
}

var begin = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

func TestEntries(t *testing.T) {
	j := open(t)
	if list, err := j.List(); err != nil || len(list) != 0 {
		t.Fatalf("an empty journal: %v, %v", list, err)
	}
	for i := range 3 {
		at := begin.Add(time.Duration(i) * time.Microsecond)
		if err := j.Add(Entry{ID: NewID(at), Time: at, Object: fmt.Sprint("T", i), Done: json.RawMessage("[]")}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := j.List()
	if err != nil || len(list) != 3 || list[0].Object != "T2" || list[0].ID != "20260102T030405678903" {
		t.Fatalf("%+v, %v", list, err)
	}
	if e, err := j.Get("20260102T030405678902"); err != nil || e.Object != "T1" {
		t.Errorf("%+v, %v", e, err)
	}
	for id, found := range map[string]int{"2026": 3, "1999": 0, "": 0} {
		_, err := j.Get(id)
		if none, ok := errors.AsType[*NotFoundError](err); !ok || none.Found != found {
			t.Errorf("Get(%q): %v, want %d found", id, err, found)
		}
	}
	// Taken back: the same entry, once more.
	e := list[2]
	e.Undone = begin
	if err := j.Add(e); err != nil {
		t.Fatal(err)
	}
	if list, err := j.List(); err != nil || len(list) != 3 || list[2].Undone.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestBounds(t *testing.T) {
	j := open(t)
	for i := range maxEntries + 5 {
		at := begin.Add(time.Duration(i) * time.Second)
		if err := j.Add(Entry{ID: NewID(at), Time: at, Done: json.RawMessage("[]")}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := j.List()
	if err != nil || len(list) != maxEntries || !list[len(list)-1].Time.Equal(begin.Add(5*time.Second)) {
		t.Errorf("%d entries, the oldest of %v, %v", len(list), list[len(list)-1].Time, err)
	}
	huge, err := json.Marshal(make([]byte, maxEntry))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Add(Entry{ID: "x", Done: huge}); err == nil {
		t.Error("an entry above the bound was taken")
	}
}

// One broken entry does not hide the others.
func TestBrokenEntry(t *testing.T) {
	j := open(t)
	if err := j.Add(Entry{ID: NewID(begin), Time: begin, Done: json.RawMessage("[]")}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(j.dir, "20270101T000000000000.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := j.List(); err == nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
