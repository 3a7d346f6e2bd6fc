package plane

import (
	"strings"
	"testing"
)

func TestParseSeats(t *testing.T) {
	got, err := parseSeats(strings.NewReader(`# TYPE apiserver_flowcontrol_current_executing_seats gauge
apiserver_flowcontrol_current_executing_seats{flow_schema="exempt",priority_level="exempt"} 12
apiserver_flowcontrol_current_executing_seats{flow_schema="service-accounts",priority_level="workload-low"} 7
apiserver_flowcontrol_nominal_limit_seats{priority_level="leader-election"} 25
apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} 245
`))
	if want := (Seats{Used: 7, Limit: 245}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := parseSeats(strings.NewReader(`apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} many`)); err == nil {
		t.Error("a malformed number is not an error")
	}
}
