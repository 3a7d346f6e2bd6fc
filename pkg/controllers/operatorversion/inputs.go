package operatorversion

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/plans"
)

// hasInputChanged reports whether the install plan or its parameters differ from those that the last run was started with. A
// digest that no key opens counts as that of spec if spec had been acted upon.
func hasInputChanged(ov *v1beta1.OperatorVersion, ring *keyring.Ring) bool {
	digest, inputs := ov.Status.InputsHash, runInputs(ov)
	switch {
	case keyring.IDOf(digest) == "":
		return digest != keyless(inputs)
	case !ring.Knows(digest):
		return ov.Status.ObservedGeneration != ov.Generation
	}
	return !ring.Fits(digest, inputs...)
}

// rehashInputs replaces the digest of the inputs of the last run by one with the current key, if spec has the same inputs.
func (a *action) rehashInputs() {
	status := &a.Next.Status
	_, last := plans.LatestRun(status.PlanStatus)
	if last.Status == v1beta1.Complete && a.cause == "" && keyring.IDOf(status.InputsHash) != a.ring.Current() {
		status.InputsHash = a.ring.Digest(runInputs(a.Next)...)
	}
}

// runInputs are what a run of the install plan is started with, as parts of a digest.
func runInputs(ov *v1beta1.OperatorVersion) []string {
	text, _ := json.Marshal([]any{ov.Spec.InstallPlan, ov.Spec.InstallParameters}) // texts always can be
	return []string{"install", string(ov.UID), string(text)}
}

// keyless returns the digest that earlier versions of kudo made without a key. It is compared only, and never written, since a reader of
// the status can test guesses of the parameters with it.
func keyless(inputs []string) string {
	sum := sha256.Sum256([]byte(inputs[len(inputs)-1]))
	return hex.EncodeToString(sum[:10])
}
