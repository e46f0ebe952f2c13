package remoting

import "strconv"

// Version is the protocol version that this implementation names in its
// frames: V5_5_0.
const Version int32 = V5_5_0

// Version ordinals at which the behaviour of a peer changes
// (docs/wire/headers.md).
const (
	V3_0_7_SNAPSHOT int32 = 28
	V3_0_11         int32 = 37
	V3_1_8_SNAPSHOT int32 = 62
	V3_4_9          int32 = 121
	V3_5_8          int32 = 137
	V4_0_0          int32 = 213
	V4_9_3          int32 = 399
	V4_9_4          int32 = 401
	V5_0_0          int32 = 413
	V5_3_1          int32 = 475
	V5_5_0          int32 = 513
	HigherVersion   int32 = 612
)

// earlyVersions are the ordinals before the numbering became regular.
var earlyVersions = [...]string{
	"V3_0_0_SNAPSHOT", "V3_0_0_ALPHA1", "V3_0_0_BETA1", "V3_0_0_BETA2", "V3_0_0_BETA3", "V3_0_0_BETA4",
	"V3_0_0_BETA5", "V3_0_0_BETA6_SNAPSHOT", "V3_0_0_BETA6", "V3_0_0_BETA7_SNAPSHOT", "V3_0_0_BETA7",
	"V3_0_0_BETA8_SNAPSHOT", "V3_0_0_BETA8", "V3_0_0_BETA9_SNAPSHOT", "V3_0_0_BETA9", "V3_0_0_FINAL",
}

// versionRuns are the regular stretches: each patch release has two ordinals,
// its snapshot and itself.
var versionRuns = [...]struct{ major, minor, firstPatch, lastPatch int }{
	{3, 0, 1, 15},
	{3, 1, 0, 9},
	{3, 2, 0, 9},
	{3, 3, 1, 9},
	{3, 4, 1, 9},
	{3, 5, 1, 9},
	{3, 6, 1, 9},
	{3, 7, 1, 9},
	{3, 8, 1, 9},
	{3, 9, 1, 9},
	{4, 0, 0, 9},
	{4, 1, 0, 9},
	{4, 2, 0, 9},
	{4, 3, 0, 9},
	{4, 4, 0, 9},
	{4, 5, 0, 9},
	{4, 6, 0, 9},
	{4, 7, 0, 9},
	{4, 8, 0, 9},
	{4, 9, 0, 9},
	{5, 0, 0, 9},
	{5, 1, 0, 9},
	{5, 2, 0, 9},
	{5, 3, 0, 9},
	{5, 4, 0, 9},
	{5, 5, 0, 9},
	{5, 6, 0, 9},
	{5, 7, 0, 9},
	{5, 8, 0, 9},
	{5, 9, 0, 9},
}

var versionNames = func() []string {
	names := append([]string(nil), earlyVersions[:]...)
	for _, r := range versionRuns {
		for p := r.firstPatch; p <= r.lastPatch; p++ {
			n := "V" + strconv.Itoa(r.major) + "_" + strconv.Itoa(r.minor) + "_" + strconv.Itoa(p)
			names = append(names, n+"_SNAPSHOT", n)
		}
	}
	return append(names, "HIGHER_VERSION")
}()

// VersionName returns the name of a version ordinal, for example "V5_5_0". An
// ordinal above the table is "HIGHER_VERSION", a negative one is shown as a
// number.
func VersionName(v int32) string {
	switch {
	case v < 0:
		return strconv.Itoa(int(v))
	case int(v) >= len(versionNames):
		return versionNames[len(versionNames)-1]
	}
	return versionNames[v]
}
