package operatorversion

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/plans"
)

// unlock gets the keys. Without them nothing can be started, and nothing that was started can be told from what others
// have written.
func (p *pass) unlock(ctx context.Context) (bool, error) {
	ring, err := p.Keys.Ring(ctx)
	var missing *history.KeyMissingError
	switch {
	case err == nil:
		p.ring = ring
		if stalled := meta.FindStatusCondition(p.ov.Status.Conditions, v1beta1.StalledCondition); stalled != nil && stalled.Reason == v1beta1.ReasonHistoryKeyMissing {
			meta.RemoveStatusCondition(&p.ov.Status.Conditions, v1beta1.StalledCondition)
		}
		return false, nil
	case !errors.As(err, &missing):
		return true, err
	}
	p.result.RequeueAfter = lookAgain
	if meta.IsStatusConditionTrue(p.ov.Status.Conditions, v1beta1.InstalledCondition) { // what it installed is there
		p.condition(v1beta1.StalledCondition, metav1.ConditionTrue, v1beta1.ReasonHistoryKeyMissing, missing.Error())
	} else {
		p.condition(v1beta1.InstalledCondition, metav1.ConditionFalse, v1beta1.ReasonHistoryKeyMissing, missing.Error())
	}
	p.once(v1beta1.EventHistoryKeyMissing, missing.Error())
	return true, p.commit(ctx)
}

// proof is that a run was started: its uid, and the id of the key that its record is sealed with.
type proof struct {
	uid types.UID
	key string
}

// lost ends a run that this manager has not started, and that has no record: the status alone is no proof that it was
// started.
func (p *pass) lost(ctx context.Context, name string, st v1beta1.PlanStatus) (bool, error) {
	key := client.ObjectKeyFromObject(p.ov)
	if known, found := p.begun.Load(key); found && known.(proof).uid == st.UID && p.ring.Has(known.(proof).key) {
		return false, nil
	}
	record, err := p.History.Read(ctx, p.ov, st.Revision)
	if err == nil && (record.Plan != name || record.UID != st.UID) {
		err = &history.UnusableError{Namespace: p.ov.Namespace, Name: history.NameFor(p.ov, st.Revision)}
	}
	switch {
	case err == nil:
		p.begun.Store(key, proof{st.UID, record.Key})
		return false, nil
	case !history.Unusable(err):
		return false, err
	}
	plans.Fail(&st, fmt.Sprintf("run %d of OperatorVersion %s/%s cannot go on: %s; kubectl kudo plan retry --operator-version starts it anew",
		st.Revision, p.ov.Namespace, p.ov.Name, err), p.Clock.Now())
	p.ov.Status.PlanStatus[name] = st
	p.finished(name, st)
	return true, nil
}

// inputs are what a run of the install plan is started with, as parts of a digest.
func (p *pass) inputs() []string {
	text, _ := json.Marshal([]any{p.ov.Spec.InstallPlan, p.ov.Spec.InstallParameters}) // texts always can be
	return []string{"install", string(p.ov.UID), string(text)}
}

// changed reports whether the install plan or its parameters are others than the last run was started with. A digest that is
// not of the current key is made anew; one that cannot be read is taken for that of what spec has, if spec was seen.
func (p *pass) changed() bool {
	status, inputs := &p.ov.Status, p.inputs()
	same := p.ring.Fits(status.Inputs, inputs...)
	switch {
	case keyring.IDOf(status.Inputs) == "":
		same = status.Inputs == keyless(inputs)
	case !p.ring.Knows(status.Inputs):
		same = p.written.Status.ObservedGeneration == p.ov.Generation
	}
	if same && keyring.IDOf(status.Inputs) != p.ring.Current() {
		status.Inputs = p.ring.Digest(inputs...)
	}
	return !same
}

// keyless is the digest of before there were keys: whoever may read the status can try out guesses. It is not written any
// more.
func keyless(inputs []string) string {
	sum := sha256.Sum256([]byte(inputs[len(inputs)-1]))
	return hex.EncodeToString(sum[:10])
}
