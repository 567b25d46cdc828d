package signals

import (
	"errors"
	"fmt"
	"time"
)

// GPUID is which GPU, or which part of one, a sample is about. The UUID alone
// tells whole GPUs apart; labels such as the pod come and go (C95).
type GPUID struct {
	UUID string
	// MIG says that the sample is of a MIG device; GPUInstance and
	// ComputeInstance are its ids.
	MIG                          bool
	GPUInstance, ComputeInstance int
}

// String shows it as UUID or UUID/gi/ci.
func (id GPUID) String() string {
	if !id.MIG {
		return id.UUID
	}
	return fmt.Sprintf("%s/%d/%d", id.UUID, id.GPUInstance, id.ComputeInstance)
}

// MemoryAPI is which of NVML's two memory calls gave the figures; it is a metric
// label. The first counts what the driver reserved as used, the second apart (C94).
type MemoryAPI string

// Memory calls.
const (
	MemoryV1 MemoryAPI = "v1"
	MemoryV2 MemoryAPI = "v2"
)

// GPUMemory is the memory of a GPU in bytes.
type GPUMemory struct {
	API   MemoryAPI
	Total float64
	// Used is without Reserved in v2, with it in v1.
	Used float64
	// Reserved is what the driver keeps for itself; 0 in v1, which does not tell.
	Reserved float64
}

// ChooseMemory prefers the second call over the first, which older drivers have
// alone; false when neither gave anything.
func ChooseMemory(v1, v2 *GPUMemory) (GPUMemory, bool) {
	switch {
	case v2 != nil:
		m := *v2
		m.API = MemoryV2
		return m, true
	case v1 != nil:
		m := *v1
		m.API, m.Reserved = MemoryV1, 0
		return m, true
	default:
		return GPUMemory{}, false
	}
}

// UsedWithReserved is what thresholds on GPU memory are about, in bytes: used
// including reserved, so that both calls mean the same.
func (m GPUMemory) UsedWithReserved() float64 { return m.Used + m.Reserved }

// UsedRatio is UsedWithReserved / Total, 0 to 1; false for figures that cannot be.
func (m GPUMemory) UsedRatio() (float64, bool) {
	if m.check() != nil {
		return 0, false
	}
	return m.UsedWithReserved() / m.Total, true
}

// GPUSample is one poll of one GPU.
type GPUSample struct {
	ID GPUID
	At time.Time
	// Labels are attributes that may change, such as the pod.
	Labels map[string]string
	// Memory is nil when it was not read.
	Memory *GPUMemory
	// Utilisation is 0 to 100 %; nil where it is not available, as under MIG (C90).
	Utilisation *float64
	// XIDs counts the driver's error events; nil when not known.
	XIDs *float64
}

// ErrInvalidSample is wrapped by every reason for which a GPU sample is no data.
var ErrInvalidSample = errors.New("invalid GPU sample")

// Check says why a sample cannot be: a blank of DCGM's, more than the total, a
// share outside 0 to 100. Figures that are not available are no fault, but
// without memory there is nothing to go by.
func (s GPUSample) Check() error {
	if s.ID.UUID == "" {
		return fmt.Errorf("%w: it has no UUID", ErrInvalidSample)
	}
	if s.Memory == nil {
		return fmt.Errorf("%w: no memory figures", ErrInvalidSample)
	}
	if err := s.Memory.check(); err != nil {
		return err
	}
	if u := s.Utilisation; u != nil {
		switch {
		case IsBlank(*u):
			return fmt.Errorf("%w: utilisation is DCGM's blank value", ErrInvalidSample)
		case !IsData(*u) || *u < 0 || *u > 100:
			return fmt.Errorf("%w: utilisation is %g, want 0 to 100", ErrInvalidSample, *u)
		}
	}
	return nil
}

func (m GPUMemory) check() error {
	for _, f := range []struct {
		name  string
		value float64
	}{{"total", m.Total}, {"used", m.Used}, {"reserved", m.Reserved}} {
		switch {
		case IsBlank(f.value):
			return fmt.Errorf("%w: %s memory is DCGM's blank value", ErrInvalidSample, f.name)
		case !IsData(f.value) || f.value < 0:
			return fmt.Errorf("%w: %s memory is %g bytes", ErrInvalidSample, f.name, f.value)
		}
	}
	switch {
	case m.Total <= 0:
		return fmt.Errorf("%w: total memory is 0", ErrInvalidSample)
	case m.UsedWithReserved() > m.Total:
		return fmt.Errorf("%w: %g of %g bytes are used", ErrInvalidSample, m.UsedWithReserved(), m.Total)
	}
	return nil
}

// DCGM's blank values and the three after each, which say why: not found, not
// supported, not permitted. As scrape text the integer is 9.223372036854776e+18.
const (
	dcgmFP64Blank  = 140737488355328.0
	dcgmInt64Blank = 9223372036854775792.0
	dcgmReasons    = 3
)

// IsBlank says whether a figure is one of DCGM's values for "there is none"
// (C92). The 32-bit blank is not among them: as bytes it could be a figure, and
// as a share it is out of range anyway.
func IsBlank(v float64) bool {
	return v >= dcgmFP64Blank && v <= dcgmFP64Blank+dcgmReasons || v >= dcgmInt64Blank
}
