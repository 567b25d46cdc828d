package embedded

import (
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

func open(t testing.TB, dir string) *tsdb.DB {
	t.Helper()
	e, err := New(Options{Dir: dir})
	require.NoError(t, err)
	db, err := tsdb.Open(filepath.Join(dir, "tsdb"), slog.New(slog.DiscardHandler), nil, e.storage(), nil)
	require.NoError(t, err)
	db.DisableCompactions() // they are called here instead of from the background
	return db
}

// fill writes a sample for each series in every 5 s of a time, compacting as the
// background would.
func fill(t testing.TB, db *tsdb.DB, series int, begin, end time.Time) {
	t.Helper()
	refs := make([]storage.SeriesRef, series)
	sets := make([]labels.Labels, series)
	for i := range sets {
		sets[i] = labels.FromStrings("__name__", "vllm:request_success_total", "engine", strconv.Itoa(i), "job", "engine",
			"instance", "10.0.0.1:8000", "service", "llm", "environment", "prod")
	}
	compacted := begin
	for at := begin; at.Before(end); at = at.Add(5 * time.Second) {
		app := db.Appender(t.Context())
		for i := range sets {
			// A counter that grows unevenly: what real ones compress to.
			v := math.Floor(float64(at.Unix()-begin.Unix())*3.7+float64(i%7)*math.Sin(float64(at.Unix()))) + float64(i)
			ref, err := app.Append(refs[i], sets[i], at.UnixMilli(), v)
			require.NoError(t, err)
			refs[i] = ref
		}
		require.NoError(t, app.Commit())
		if at.Sub(compacted) >= 10*time.Minute {
			compact(t, db)
			compacted = at
		}
	}
}

func compact(t testing.TB, db *tsdb.DB) {
	t.Helper()
	db.EnableCompactions()
	require.NoError(t, db.Compact(t.Context()))
	db.DisableCompactions()
}

func size(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		bytes += info.Size()
		return err
	}))
	return bytes
}

// However long it runs, a series takes about what doc.go says.
func TestDiskIsBounded(t *testing.T) {
	t.Parallel()
	const series = 20
	dir := t.TempDir()
	db := open(t, dir)
	begin := time.Now().Add(-24 * time.Hour).Truncate(time.Hour)
	fill(t, db, series, begin, begin.Add(9*time.Hour))
	halfway := size(t, dir)
	fill(t, db, series, begin.Add(9*time.Hour), begin.Add(12*time.Hour))
	oldest, err := db.StartTime()
	require.NoError(t, err)
	kept := begin.Add(12 * time.Hour).Sub(time.UnixMilli(oldest))
	require.GreaterOrEqual(t, kept, DefaultRetention)
	require.LessOrEqual(t, kept, DefaultRetention+2*maxBlockRange)
	after := size(t, dir)
	require.Less(t, after, halfway*5/4, "it does not grow")
	t.Logf("%d B per series on disk after 12 h, of which %s are kept", after/series, kept)
	require.Less(t, after/series, int64(80_000))
	require.NoError(t, db.Close())
}

// BenchmarkReplay: how long Start takes after kill -9, with 6 h of 2,000 series.
func BenchmarkReplay(b *testing.B) {
	const series = 2000
	dir := b.TempDir()
	db := open(b, dir)
	begin := time.Now().Add(-7 * time.Hour).Truncate(time.Hour)
	fill(b, db, series, begin, begin.Add(6*time.Hour+25*time.Minute))
	require.NoError(b, db.Close())
	for b.Loop() {
		require.NoError(b, open(b, dir).Close())
	}
	b.ReportMetric(float64(size(b, dir))/series, "disk-B/series")
}
