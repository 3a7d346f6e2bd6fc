package main

import (
	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// newLogger returns the logger of the manager.
func newLogger(o *zap.Options) logr.Logger {
	return zap.New(zap.UseFlagOptions(o), zap.RawZapOpts(uberzap.WrapCore(func(core zapcore.Core) zapcore.Core { return lazyCore{core} })))
}

// lazyCore encodes the values of a logger when it writes its first line. controller-runtime makes a logger with values for each reconcile,
// and most of them write nothing. What zapcore.NewLazyWith returns encodes its values also when a logger is made of it, which is what
// controller-runtime does: so each of these loggers has a lazyCore again.
type lazyCore struct{ zapcore.Core }

// With implements zapcore.Core.
func (c lazyCore) With(fields []zapcore.Field) zapcore.Core {
	return lazyCore{zapcore.NewLazyWith(c.Core, fields)}
}
