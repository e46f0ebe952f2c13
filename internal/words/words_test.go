package words

import "testing"

func TestCount(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Count(1, "message"), "1 message"},
		{Count(2, "message"), "2 messages"},
		{Count(0, "entry"), "0 entries"},
		{Count(int64(-1), "key"), "-1 keys"},
		{Count(1, "member is", "members are"), "1 member is"},
		{Count(uint64(1<<63), "member is", "members are"), "9223372036854775808 members are"},
		{Count(int32(3), "batch"), "3 batches"},
		{Count(3, "index"), "3 indexes"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
