package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"gorm.io/gorm"
	gormlog "gorm.io/gorm/logger"
)

// slowStatement is when a statement is worth a warning.
const slowStatement = 500 * time.Millisecond

// queryLog sends what gorm has to say to slog. It never shows parameter values:
// they hold hashes, names and untrusted text.
type queryLog struct{ logger *slog.Logger }

var (
	_ gormlog.Interface = queryLog{}
	_ gorm.ParamsFilter = queryLog{}
)

// LogMode does nothing: the level is slog's.
func (l queryLog) LogMode(gormlog.LogLevel) gormlog.Interface { return l }

// Info, Warn and Error drop the arguments, which may hold values.
func (l queryLog) Info(ctx context.Context, msg string, _ ...any) { l.logger.DebugContext(ctx, msg) } //nolint:sloglint // gorm words the message

// Warn logs the message alone.
func (l queryLog) Warn(ctx context.Context, msg string, _ ...any) { l.logger.WarnContext(ctx, msg) } //nolint:sloglint // gorm words the message

// Error logs the message alone.
func (l queryLog) Error(ctx context.Context, msg string, _ ...any) { l.logger.ErrorContext(ctx, msg) } //nolint:sloglint // gorm words the message

// ParamsFilter keeps values out of the logged statement.
func (l queryLog) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}

// Trace logs failed statements at debug, because their errors are returned, and slow ones as warnings.
func (l queryLog) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), err error) {
	took := time.Since(begin)
	failed := err != nil && !errors.Is(err, gorm.ErrRecordNotFound)
	level := slog.LevelDebug
	switch {
	case took >= slowStatement:
		level = slog.LevelWarn
	case !failed:
		return
	}
	if !l.logger.Enabled(ctx, level) {
		return
	}
	sql, rows := fc()
	attrs := []slog.Attr{slog.String("sql", sql), slog.Int64("rows", rows), slog.Duration("took", took)}
	if failed {
		attrs = append(attrs, slog.Any("error", err))
	}
	l.logger.LogAttrs(ctx, level, "database statement", attrs...)
}
