package enginesim

// fault is what goes wrong with one request.
type fault string

const (
	faultNone       fault = "none"
	faultHang       fault = "hang"
	faultFail       fault = "fail"
	faultEmpty      fault = "empty"
	faultErrorIn200 fault = "error_in_200"
	faultCut        fault = "cut"
)

// injectedFaults are all faults a knob can cause, in order of precedence.
var injectedFaults = []fault{faultHang, faultFail, faultEmpty, faultErrorIn200, faultCut}

// fault decides what happens to the request with this number. Each fault has
// its own draw, so that changing one ratio does not move the others.
func (k Knobs) fault(number uint64, stream bool) fault {
	ratios := [...]float64{k.HangRatio, k.FailRatio, k.EmptyRatio, k.ErrorIn200Ratio, k.CutRatio}
	for i, f := range injectedFaults {
		if f == faultCut && !stream {
			continue
		}
		if draw(k.Seed, number, uint64(i)) < ratios[i] {
			return f
		}
	}
	return faultNone
}

// draw is a repeatable number in [0, 1).
func draw(seed, number, kind uint64) float64 {
	h := mix(mix(mix(seed)^number) ^ kind)
	return float64(h>>11) / (1 << 53)
}

// mix is the output function of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}
