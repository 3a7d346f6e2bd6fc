package history

import (
	"context"
	"encoding/json"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Entry is a run as people see it in the history. Nothing that kudo does depends on it: it is read without the key of the seals.
type Entry struct {
	Revision int64                   `json:"revision"`
	Plan     string                  `json:"plan"`
	Status   v1beta1.ExecutionStatus `json:"status,omitempty"`
	Started  metav1.MicroTime        `json:"started"`
	Finished *metav1.MicroTime       `json:"finished,omitempty"`
	Version  string                  `json:"operatorVersion"`
	Cause    string                  `json:"cause,omitempty"`
	// RequestedBy is the user who asked for the run, and the client by its own account; empty if the user is not known.
	RequestedBy string `json:"requestedBy,omitempty"`
	Message     string `json:"message,omitempty"`
	// Former is set if the run is from before a restore: it is shown only.
	Former bool `json:"fromBeforeTheRestore,omitempty"`

	// Parameters that the run was started with. The values of those in Sensitive are sealed.
	Parameters map[string]string `json:"-"`
	Sensitive  []string          `json:"-"`
	// Unread is the reason why the record cannot be read: a newer version of kudo has written it. It is nil if the record can be read.
	Unread error `json:"-"`
}

// List returns the runs of an Instance or an OperatorVersion, the oldest first. It needs the right to list ControllerRevisions, and no key.
func List(ctx context.Context, c client.Reader, owner client.Object) ([]Entry, error) {
	list := &appsv1.ControllerRevisionList{}
	of := client.MatchingLabels{v1beta1.InstanceLabel: owner.GetName()}
	if _, installs := owner.(*v1beta1.OperatorVersion); installs {
		of = client.MatchingLabels{v1beta1.HistoryLabel: string(owner.GetUID())}
	}
	if err := c.List(ctx, list, client.InNamespace(owner.GetNamespace()), of); err != nil {
		return nil, err
	}
	return Entries(list.Items, owner), nil
}

// Entries returns the runs of an owner that are among ControllerRevisions, the oldest first. ControllerRevisions record how a run was
// started; its outcome is in the status, and of an older run in an annotation.
func Entries(records []appsv1.ControllerRevision, owner client.Object) []Entry {
	ended := map[int64]v1beta1.PlanStatus{}
	for _, st := range planStatus(owner) {
		ended[st.Revision] = st
	}
	runs, oldest := []Entry{}, max(0, Newest(owner)-Limit) // what is older holds a version for a newer run
	for i := range records {
		record := &records[i]
		former := IsFormer(record, owner)
		if record.Revision <= oldest || !former && !metav1.IsControlledBy(record, owner) {
			continue
		}
		r, err := entryOf(record)
		if err != nil {
			continue
		}
		r.Former = former
		if st, known := ended[record.Revision]; known {
			r.Status, r.Finished, r.Message = st.Status, st.FinishedTimestamp, st.Message
		} else if o := OutcomeOf(record); o != nil {
			r.Status, r.Finished, r.Message = o.Status, o.Finished, o.Message
		}
		runs = append(runs, r)
	}
	sort.Slice(runs, func(a, b int) bool { return runs[a].Revision < runs[b].Revision })
	for i := range runs {
		r := &runs[i]
		var next *metav1.MicroTime
		if i+1 < len(runs) && r.Revision < Newest(owner) { // a record beyond the newest run is of one that was not started
			next = &runs[i+1].Started
		}
		shown := Outcome{Status: r.Status, Finished: r.Finished, Message: r.Message}.InHistory(next)
		r.Status, r.Finished = shown.Status, shown.Finished
	}
	return runs
}

// planStatus returns the plans of an Instance or an OperatorVersion.
func planStatus(owner client.Object) map[string]v1beta1.PlanStatus {
	switch o := owner.(type) {
	case *v1beta1.OperatorVersion:
		return o.Status.PlanStatus
	case *v1beta1.Instance:
		return o.Status.PlanStatus
	}
	return nil
}

// entryOf reads what a record says of the start of a run.
func entryOf(record *appsv1.ControllerRevision) (Entry, error) {
	if err := CheckFormat(record); err != nil {
		return Entry{Revision: record.Revision, Plan: "unknown", Started: metav1.NewMicroTime(record.CreationTimestamp.Time), Unread: err}, nil
	}
	started := Run{}
	err := json.Unmarshal(record.Data.Raw, &started)
	return Entry{Revision: record.Revision, Plan: started.Plan, Started: started.Started, Version: started.OperatorVersion,
		Cause: started.Cause, RequestedBy: started.RequestedBy, Parameters: started.Parameters, Sensitive: started.Sensitive}, err
}
