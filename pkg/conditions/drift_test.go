package conditions

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// drift is an entry of a ConfigMap; without a time if since is zero.
func drift(name, field, writer string, since int64) v1beta1.ObjectDrift {
	d := v1beta1.ObjectDrift{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name, Writer: writer, Message: name + " changed"}
	if field != "" {
		d.Fields = []string{field}
	}
	if since > 0 {
		at := metav1.Unix(since, 0)
		d.Since = &at
	}
	return d
}

// TestListDrift shows P30: what a status lists, and that it stays as it is for as long as the drift does.
func TestListDrift(t *testing.T) {
	type list = []v1beta1.ObjectDrift
	for _, tc := range []struct {
		reason              string
		before, found, want list
	}{
		{"nothing", nil, nil, nil},
		{"it has ended", list{drift("a", ".data.x", "mallory", 1)}, nil, nil},
		{"it is new", nil, list{drift("a", ".data.x", "mallory", 0)}, list{drift("a", ".data.x", "mallory", 9)}},
		{"it continues", list{drift("a", ".data.x", "mallory", 1)}, list{drift("a", ".data.x", "mallory", 0)}, list{drift("a", ".data.x", "mallory", 1)}},
		{"another field", list{drift("a", ".data.x", "mallory", 1)}, list{drift("a", ".data.y", "mallory", 0)}, list{drift("a", ".data.y", "mallory", 9)}},
		{"another writer", list{drift("a", ".data.x", "mallory", 1)}, list{drift("a", ".data.x", "trudy", 0)}, list{drift("a", ".data.x", "trudy", 9)}},
		{"of another object", list{drift("b", ".data.x", "mallory", 1)}, list{drift("a", ".data.x", "mallory", 0)}, list{drift("a", ".data.x", "mallory", 9)}},
		{"an entry without a time, which kudo has not written", list{drift("a", ".data.x", "mallory", 0)}, list{drift("a", ".data.x", "mallory", 0)},
			list{drift("a", ".data.x", "mallory", 9)}},
		{"sorted", nil, list{drift("b", "", "", 0), drift("a", "", "", 0)}, list{drift("a", "", "", 9), drift("b", "", "", 9)}},
	} {
		got := ListDrift(tc.before, tc.found, time.Unix(9, 5))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
		if diff := cmp.Diff(got, ListDrift(got, got, time.Unix(10, 0))); diff != "" {
			t.Errorf("%s: it is not stable: %s", tc.reason, diff)
		}
	}
}

// TestListDriftBounds attacks the list: those who change objects choose the names of fields and of field managers.
func TestListDriftBounds(t *testing.T) {
	var found []v1beta1.ObjectDrift
	for n := range 3 * v1beta1.MaxDrift {
		d := drift(fmt.Sprintf("cm-%03d", n), "", "mallory\nReady: True \x1b[2J\u202e"+strings.Repeat("ä", 4096), 0)
		for range 3 * v1beta1.MaxDriftFields {
			d.Fields = append(d.Fields, ".data.\r\x00"+strings.Repeat("🚢", 4096))
		}
		d.Message = strings.Repeat(d.Writer, 9)
		found = append(found, d)
	}
	got := ListDrift(nil, found, time.Unix(9, 0))
	if len(got) != v1beta1.MaxDrift {
		t.Errorf("%d objects are listed", len(got))
	}
	for _, d := range got {
		if len(d.Fields) != v1beta1.MaxDriftFields || len(d.Writer) > v1beta1.MaxDriftName || len(d.Message) > v1beta1.MaxDriftMessage {
			t.Fatalf("%d fields, a writer of %d bytes, a message of %d", len(d.Fields), len(d.Writer), len(d.Message))
		}
		for _, text := range append(d.Fields, d.Writer, d.Message) {
			if len(text) > v1beta1.MaxDriftMessage || strings.ContainsAny(text, "\n\r\x00\x1b\u202e") {
				t.Fatalf("%q is listed", text)
			}
		}
	}
	if diff := cmp.Diff(got, ListDrift(got, found, time.Unix(10, 0))); diff != "" {
		t.Errorf("it would be written again: %s", diff)
	}
}
