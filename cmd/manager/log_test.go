package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// costly counts how often it is encoded.
type costly struct{ encoded *int }

// MarshalJSON implements json.Marshaler.
func (c costly) MarshalJSON() ([]byte, error) {
	*c.encoded++
	return []byte(`"x"`), nil
}

// TestLogger checks that the values of a logger are encoded when it writes, once, and never if it writes nothing; and that a line has all of
// them.
func TestLogger(t *testing.T) {
	var out bytes.Buffer
	encoded := 0
	log := newLogger(&zap.Options{DestWriter: &out}).WithValues("controller", "instance", "costly", costly{&encoded})
	of := log.WithValues("name", "one")
	of.V(1).Info("not written")
	if encoded != 0 || out.Len() > 0 {
		t.Fatalf("values are encoded %d times before a line is written: %s", encoded, out.Bytes())
	}
	of.Info("written", "more", 1)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%s: %v", out.Bytes(), err)
	}
	for key, want := range map[string]any{"msg": "written", "controller": "instance", "costly": "x", "name": "one", "more": 1.0} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v: %s", key, line[key], want, out.Bytes())
		}
	}
	of.Info("again")
	log.WithValues("name", "two").Info("another one")
	if encoded != 1 {
		t.Errorf("values are encoded %d times", encoded)
	}
}

// BenchmarkReconcileLogger measures what the logger of a reconcile costs that writes nothing.
func BenchmarkReconcileLogger(b *testing.B) {
	log := newLogger(&zap.Options{DestWriter: io.Discard}).WithValues("controller", "instance")
	for b.Loop() {
		_ = log.WithValues("Instance", map[string]string{"namespace": "a", "name": "b"}, "namespace", "a", "name", "b").WithValues("reconcileID", "id")
	}
}
