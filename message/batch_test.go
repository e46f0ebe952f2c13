package message_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"mqx/message"
)

func TestBatchRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			flag        int32
			body, props []byte
		}
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item {
			return item{
				rapid.Int32().Draw(t, "flag"), rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "body"),
				rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "properties"),
			}
		}), 0, 20).Draw(t, "items")
		var body []byte
		for _, it := range items {
			body = message.AppendBatchItem(body, it.flag, it.body, it.props)
		}
		if n, err := message.CountBatch(body); n != len(items) || err != nil {
			t.Fatalf("%d items, %v", n, err)
		}
		i := 0
		for got, err := range message.SplitBatch(body) {
			if err != nil {
				t.Fatal(err)
			}
			want := items[i]
			if got.Flag != want.flag || !bytes.Equal(got.Body, want.body) || !bytes.Equal(got.Properties, want.props) {
				t.Fatalf("item %d: %+v, want %+v", i, got, want)
			}
			i++
		}
	})
}

func TestBrokenBatches(t *testing.T) {
	good := message.AppendBatchItem(nil, 1, []byte("body"), []byte("k\x01v\x02"))
	second := len(good)
	put32 := func(at int, v int32) func([]byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint32(b[second+at:], uint32(v)); return b }
	}
	for _, tt := range []struct {
		name   string
		change func([]byte) []byte
		want   message.BatchError
	}{
		{"cut in the overhead", func(b []byte) []byte { return b[:second+21] }, message.BatchError{What: "item overhead", Want: 21, Got: 22}},
		{"cut in the end", func(b []byte) []byte { return b[:len(b)-1] }, message.BatchError{What: "size", Want: 29, Got: 30}},
		{"size zero", put32(0, 0), message.BatchError{What: "size", Want: 30}},
		{"size negative", put32(0, -1), message.BatchError{What: "size", Want: 30, Got: -1}},
		{"size beyond", put32(0, math.MaxInt32), message.BatchError{What: "size", Want: 30, Got: math.MaxInt32}},
		{"body negative", put32(16, math.MinInt32), message.BatchError{What: "body length", Want: 8, Got: math.MinInt32}},
		{"body beyond", put32(16, 9), message.BatchError{What: "body length", Want: 8, Got: 9}},
		{"properties negative", func(b []byte) []byte { b[second+24] = 0x80; return b }, message.BatchError{What: "properties length", Want: 4, Got: -32764}},
		{"properties beyond", func(b []byte) []byte { b[second+25] = 5; return b }, message.BatchError{What: "properties length", Want: 4, Got: 5}},
		{"bytes that belong to nothing", func(b []byte) []byte { b[second+25] = 3; return b }, message.BatchError{What: "size", Want: 29, Got: 30}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := tt.change(append(bytes.Clone(good), good...))
			tt.want.Pos, tt.want.Index = second, 1
			items := 0
			for _, err := range message.SplitBatch(body) {
				if err == nil {
					items++
					continue
				}
				var got *message.BatchError
				if !errors.As(err, &got) || *got != tt.want || !message.IsCorrupt(err) {
					t.Errorf("%v, want %v", err, &tt.want)
				}
			}
			if items != 1 {
				t.Errorf("%d items before the broken one", items)
			}
			if n, err := message.CountBatch(body); n != 0 || err == nil {
				t.Errorf("count %d, %v", n, err)
			}
		})
	}
}

func TestBatchStops(t *testing.T) {
	body := message.AppendBatchItem(nil, 1, nil, nil)
	body = message.AppendBatchItem(body, 2, nil, nil)
	for item, err := range message.SplitBatch(body) {
		if err != nil || item.Flag != 1 {
			t.Fatalf("flag %d, %v", item.Flag, err)
		}
		break
	}
	for _, err := range message.SplitBatch(nil) {
		t.Errorf("an empty body has an item (%v)", err)
	}
}

func TestBatchItemLimits(t *testing.T) {
	var limit *message.LimitError
	defer func() {
		err, _ := recover().(error)
		if !errors.As(err, &limit) || limit.Field != "properties" {
			t.Errorf("properties of 32768 bytes: %v", err)
		}
	}()
	message.AppendBatchItem(nil, 0, nil, make([]byte, 32768))
}
