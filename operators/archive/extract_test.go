package archive

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sink keeps what it is given, and fails at a name.
type sink struct {
	found  []string
	failAt string
}

var errSink = errors.New("no room")

func (s *sink) Folder(name string) error {
	s.found = append(s.found, name+"/")
	return nil
}

func (s *sink) File(name string, content io.Reader) error {
	if name == s.failAt {
		return errSink
	}
	data, err := io.ReadAll(content)
	s.found = append(s.found, name+"="+string(data))
	return err
}

func TestExtract(t *testing.T) {
	data := pack(t, file("./b/c", "1"), file("a", "22"))
	all := &sink{}
	if err := Extract(bytes.NewReader(data), Limits{}, all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b/c=1", "a=22"}, all.found); diff != "" {
		t.Errorf("files come in the archive's order, with clean names: -want +got:\n%s", diff)
	}
	if err := Extract(bytes.NewReader(data), Limits{}, &sink{failAt: "a"}); !errors.Is(err, errSink) || !strings.Contains(err.Error(), `entry "a"`) {
		t.Errorf("errors of the sink are kept, with the entry's name: %v", err)
	}
	if err := Extract(bytes.NewReader(data[:len(data)-9]), Limits{}, &sink{}); err == nil || !strings.Contains(err.Error(), "cut short or damaged") {
		t.Errorf("a cut is found: %v", err)
	}
	if err := Extract(bytes.NewReader(data), Limits{Part: 0, File: 1}, &sink{}); err == nil || !strings.Contains(err.Error(), "has 2 bytes, more than the 1 allowed") {
		t.Errorf("limits hold: %v", err)
	}
	long := pack(t, file("a/"+strings.Repeat("x", 20), ""))
	if err := Extract(bytes.NewReader(long), Limits{Part: 10}, &sink{}); err == nil || !strings.Contains(err.Error(), "a part of the path is longer than 10 bytes") {
		t.Errorf("parts of names are bounded: %v", err)
	}
}
