package ui

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// versionRow is a line of the list of OperatorVersions.
type versionRow struct {
	Namespace, Name, Operator, Version, AppVersion string
	InstallPlan                                    string
	Signature                                      signatureRow
	State                                          state
	Message                                        string
	// Users is how many Instances use it, or that this is not known.
	Users   string
	Drifted int
}

// Link is the address of the OperatorVersion's page.
func (r versionRow) Link() string {
	return versionLink(client.ObjectKey{Namespace: r.Namespace, Name: r.Name})
}

type versionList struct {
	Feed feedStatus
	Rows []versionRow
	// In is the namespace whose Instances are counted; empty for all.
	In string
}

func (s *Server) versionsPage(*http.Request) screen {
	return still(func() view {
		list, users := versionList{Feed: s.versions.Status(), In: s.Namespace}, s.countUsers()
		for _, ov := range objectsOf[*v1beta1.OperatorVersion](s.versions) {
			row := versionRow{Namespace: ov.Namespace, Name: ov.Name, Operator: ov.Spec.Operator.Name, Version: ov.Spec.Version,
				AppVersion: ov.Spec.AppVersion, InstallPlan: ov.Spec.InstallPlan, Signature: signatureOf(ov),
				Drifted: len(ov.Status.Drift), Users: "not known"}
			if s.instances.informer.HasSynced() {
				row.Users = strconv.Itoa(users[client.ObjectKeyFromObject(ov).String()])
			}
			if row.State, row.Message = installState(ov); row.Message != "" {
				row.Message = maskOf(ov.Spec.InstallParameters, ov, nil).Text(row.Message)
			}
			list.Rows = append(list.Rows, row)
		}
		slices.SortFunc(list.Rows, func(a, b versionRow) int {
			return cmp.Or(cmp.Compare(a.State.rank, b.State.rank), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		return view{Title: "Versions", Nav: "versions", Fragments: []fragment{{ID: "versions", Template: "versions", Data: list}}}
	})
}

// countUsers counts the Instances that use each OperatorVersion, or are about to, by its namespace and name.
func (s *Server) countUsers() map[string]int {
	out := map[string]int{}
	for _, i := range objectsOf[*v1beta1.Instance](s.instances) {
		wanted := i.OperatorVersionKey().String()
		out[wanted]++
		if base := i.Status.Baseline; base != nil && base.OperatorVersion != wanted {
			out[base.OperatorVersion]++
		}
	}
	return out
}

// usersOf returns the Instances that use an OperatorVersion, or are about to, sorted.
func (s *Server) usersOf(version types.NamespacedName) []types.NamespacedName {
	var list v1beta1.InstanceList
	for _, i := range objectsOf[*v1beta1.Instance](s.instances) {
		list.Items = append(list.Items, *i)
	}
	return list.UsersOf(version)
}

// The states of OperatorVersions.
var (
	versionFailed     = state{"failed", "✗", "bad", 0}
	versionWaiting    = state{"waiting", "○", "idle", 1}
	versionInstalling = state{"installing", "↻", "busy", 1}
	versionDrifted    = state{"drifted", "≠", "warn", 2}
	versionInstalled  = state{"installed", "✓", "good", 3}
)

// installState returns the state of an OperatorVersion's install plan. Without one, it is installed. The status of an older generation
// says nothing of the newest one.
func installState(ov *v1beta1.OperatorVersion) (state, string) {
	installed := meta.FindStatusCondition(ov.Status.Conditions, v1beta1.InstalledCondition)
	switch {
	case ov.Spec.InstallPlan != "" && ov.Status.ObservedGeneration < ov.Generation:
		return versionWaiting, ""
	case meta.IsStatusConditionTrue(ov.Status.Conditions, v1beta1.StalledCondition):
		return versionFailed, ov.Status.AggregatedStatus.Message
	case len(ov.Status.Drift) > 0:
		return versionDrifted, ov.Status.Drift[0].Message
	case ov.Installed():
		return versionInstalled, ""
	case installed != nil:
		return versionInstalling, installed.Message
	}
	return versionInstalling, ""
}

// versionSubject is what the page of an OperatorVersion shows.
type versionSubject struct {
	Feed    feedStatus
	Missing string
	// Version is nil if it is not known.
	Version     *v1beta1.OperatorVersion
	State       state
	Message     string
	Conditions  []metav1.Condition
	InstallPlan []node
	Plans       []string
	Users       []types.NamespacedName
	// UsersKnown is set if the Instances have been listed, those In a namespace or, if it is empty, in all.
	UsersKnown bool
	In         string
	Parameters []parameterRow
	Signature  signatureRow
	Source     string
}

func (s *Server) versionPage(r *http.Request) screen {
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	return still(func() view {
		sub := s.versionOf(key)
		v := view{Title: key.String(), Nav: "versions", Fragments: []fragment{{ID: "version", Template: "version", Data: sub}}}
		if sub.Missing != "" {
			v.Status = http.StatusNotFound
		}
		return v
	})
}

func (s *Server) versionOf(key types.NamespacedName) versionSubject {
	sub := versionSubject{Feed: s.versions.Status(), In: s.Namespace, UsersKnown: s.instances.informer.HasSynced()}
	ov, found := objectOf[*v1beta1.OperatorVersion](s.versions, key.Namespace, key.Name)
	switch {
	case !found && !s.versions.informer.HasSynced():
		return sub
	case !found:
		sub.Missing = "This OperatorVersion does not exist."
		return sub
	}
	sub.Version, sub.Plans, sub.Users = ov, plans.Names(ov.Spec.InstancePlans()), s.usersOf(key)
	sub.State, sub.Message = installState(ov)
	mask := maskOf(ov.Spec.InstallParameters, ov, nil)
	sub.Parameters = definedParameters(ov)
	show := func(message string) string { return long(mask.Text(message)) }
	sub.Message, sub.Conditions = show(sub.Message), shownConditions(ov.Status.Conditions, show)
	sub.Signature = signatureOf(ov)
	sub.Signature.Message = show(sub.Signature.Message)
	if ov.Spec.InstallPlan != "" {
		plan := map[string]v1beta1.Plan{ov.Spec.InstallPlan: ov.Spec.Plans[ov.Spec.InstallPlan]}
		sub.InstallPlan = planTree(ov.Status.PlanStatus, plan, show)
	}
	if p := ov.Spec.Provenance; p != nil {
		sub.Source = long(p.Source)
	}
	return sub
}
