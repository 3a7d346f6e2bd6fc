package preview

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/pkg/text"
)

// maxRules is how many rules of a sort a text shows.
const maxRules = 10

// Rights are those that all plans of an Instance need after an edit, whether or not the edit runs them. The lists are sorted, no two rules
// of one overlap, and sensitive values in them are masked. A list whose name ends in Cluster holds rules for the whole cluster, the other
// one those in the namespace of the Instance.
type Rights struct {
	// Account is the ServiceAccount with whose rights the plans read and write, as NAMESPACE/NAME.
	Account string `json:"account"`
	// Given is set if the command itself gives the account what it lacks.
	Given bool `json:"given,omitempty"`
	// Needed are all rules that the plans need. The account has those that Missing does not list, unless Given is set or Unknown says
	// that it is not known.
	Needed        []rbacv1.PolicyRule `json:"needed,omitempty"`
	NeededCluster []rbacv1.PolicyRule `json:"neededCluster,omitempty"`
	// Missing are the rules that the account lacks.
	Missing        []rbacv1.PolicyRule `json:"missing,omitempty"`
	MissingCluster []rbacv1.PolicyRule `json:"missingCluster,omitempty"`
	// Added are the rules that the plans need and did not need before the edit. A creation adds all.
	Added        []rbacv1.PolicyRule `json:"added,omitempty"`
	AddedCluster []rbacv1.PolicyRule `json:"addedCluster,omitempty"`
	// Removed are the rules that the plans needed before the edit and no longer need.
	Removed        []rbacv1.PolicyRule `json:"removed,omitempty"`
	RemovedCluster []rbacv1.PolicyRule `json:"removedCluster,omitempty"`
	// Unknown says what is not known of it.
	Unknown []string `json:"unknown,omitempty"`
}

// compareRights fills in which rights the plans need, which of them the account lacks, and how they differ from before the edit.
func (c *computation) compareRights(ctx context.Context) {
	out := computeRights(ctx, c)
	out.mask(c.mask)
	c.out.Rights = out
}

// computeRights returns the rights that the plans need, with the sensitive values in them.
func computeRights(ctx context.Context, c *computation) *Rights {
	i := c.edit.After
	out := &Rights{Given: c.edit.GivesRights}
	account, known := c.account(i)
	out.Account = account.String()
	after, err := c.neededRights(ctx, i, c.edit.Version, c.given)
	if err != nil {
		out.Unknown = append(out.Unknown, err.Error())
		return out
	}
	out.Needed, out.NeededCluster = after.Rules, after.ClusterRules
	out.Unknown = append(out.Unknown, after.Notes...)
	before, err := formerRights(ctx, c)
	if err != nil {
		out.Unknown = append(out.Unknown, "which rights the plans have needed: "+err.Error())
		before = after
	}
	out.Added, out.AddedCluster = rights.Without(after.Rules, before.Rules), rights.Without(after.ClusterRules, before.ClusterRules)
	out.Removed, out.RemovedCluster = rights.Without(before.Rules, after.Rules), rights.Without(before.ClusterRules, after.ClusterRules)
	if !known {
		out.Unknown = append(out.Unknown, "with whose rights the plans run: you may not read the settings of kudo")
	}
	if known && !out.Given {
		if out.Missing, err = rights.Missing(ctx, c.Client, account, i.Namespace, after.Rules); err == nil {
			out.MissingCluster, err = rights.Missing(ctx, c.Client, account, "", after.ClusterRules)
		}
		if err != nil {
			out.Unknown = append(out.Unknown, err.Error())
		}
	}
	return out
}

// formerRights returns the rights that the plans need before the edit: none if it creates the Instance.
func formerRights(ctx context.Context, c *computation) (*rights.Rights, error) {
	if c.edit.Before == nil {
		return &rights.Rights{}, nil
	}
	return c.neededRights(ctx, c.edit.Before, cmp.Or(c.edit.Old, c.edit.Version), c.before)
}

// mask masks sensitive values: names of objects may be made from them. Rules that differ in them alone become one, and the order is that
// of what is shown, so that neither number nor order says anything about the values.
func (r *Rights) mask(mask params.Mask) {
	for _, rules := range []*[]rbacv1.PolicyRule{&r.Needed, &r.NeededCluster, &r.Missing, &r.MissingCluster, &r.Added, &r.AddedCluster,
		&r.Removed, &r.RemovedCluster} {
		masked := make([]rbacv1.PolicyRule, len(*rules))
		for n, rule := range *rules {
			masked[n] = maskRule(rule, mask)
		}
		*rules = rights.Merge(masked)
	}
	r.Account = mask.Whole(r.Account)
	for n, reason := range r.Unknown {
		r.Unknown[n] = mask.Text(reason)
	}
}

// maskRule returns a rule without sensitive values.
func maskRule(rule rbacv1.PolicyRule, mask params.Mask) rbacv1.PolicyRule {
	out := *rule.DeepCopy()
	for _, list := range [][]string{out.Verbs, out.APIGroups, out.Resources, out.ResourceNames, out.NonResourceURLs} {
		for n, entry := range list {
			list[n] = mask.Whole(entry)
		}
	}
	return out
}

// account is the one with whose rights the plans of an Instance run, and whether it is known.
func (o Options) account(i *v1beta1.Instance) (types.NamespacedName, bool) {
	if i.Spec.ServiceAccountName != "" {
		return types.NamespacedName{Namespace: i.Namespace, Name: i.Spec.ServiceAccountName}, true
	}
	return o.DefaultAccount, o.DefaultAccount.Name != ""
}

// runAccount returns with whose rights a run of an Instance would read and write, and whether these are the rights of kudo. If the settings
// are not known, the account is that of the last run where it is one of the namespace, and else that of kudo.
func (o Options) runAccount(i *v1beta1.Instance) (account apply.Account, privileged bool) {
	by, known := o.account(i)
	if known {
		return apply.Account(by), o.DefaultPrivileged && i.Spec.ServiceAccountName == ""
	}
	if last := i.Status.Baseline; last != nil {
		by.Namespace, by.Name, _ = strings.Cut(last.RunAs, "/")
	}
	return apply.Account(by), by.Namespace != i.Namespace || by.Name == ""
}

func (c *computation) neededRights(ctx context.Context, i *v1beta1.Instance, version *v1beta1.OperatorVersion,
	given map[string]string) (*rights.Rights, error) {
	specOf := func(name string) *v1beta1.OperatorVersionSpec {
		if of := c.versionOf(ctx, types.NamespacedName{Namespace: i.Namespace, Name: name}); of != nil {
			return &of.Spec
		}
		return nil
	}
	return rights.Of(rights.Subject{
		Namespace: i.Namespace, Name: i.Name, Version: &version.Spec, Parameters: maps.Clone(given), Sources: i.Spec.ParametersFrom,
		From: i.CompletedVersion(), Written: i.Status.Resources,
	}, rights.Known{Versions: specOf, Served: c.cluster.Mapper().RESTMapping})
}

// versionOf returns an OperatorVersion of the edit, else of the cluster; nil if there is none, or if it cannot be read.
func (c *computation) versionOf(ctx context.Context, key types.NamespacedName) *v1beta1.OperatorVersion {
	for _, version := range slices.Concat(c.edit.Versions, []*v1beta1.OperatorVersion{c.edit.Version}) {
		if client.ObjectKeyFromObject(version) == key {
			return version
		}
	}
	version := &v1beta1.OperatorVersion{}
	if c.cluster.Reader(c.Client).Get(ctx, key, version) != nil {
		return nil
	}
	return version
}

// isHarmless reports whether it is known that the plans need nothing more than before, and that their account lacks nothing. A preview
// without Rights is of a command that changes none.
func (r *Rights) isHarmless() bool {
	return r == nil || len(r.Missing)+len(r.MissingCluster)+len(r.Added)+len(r.AddedCluster)+len(r.Unknown) == 0
}

// isEmpty reports whether there is nothing to say.
func (r *Rights) isEmpty() bool {
	return r.isHarmless() && (r == nil || len(r.Removed)+len(r.RemovedCluster) == 0)
}

// lines are the rights for people: one for each rule that is missing, or is needed newly or no longer, and how many are needed in all.
func (r *Rights) lines() []string {
	if r.isEmpty() {
		return nil
	}
	var out []string
	list := func(sign string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules[:min(len(rules), maxRules)] {
			out = append(out, sign+" "+text.Plain(rights.Describe(rule), maxWhy))
		}
		if more := len(rules) - maxRules; more > 0 {
			out = append(out, fmt.Sprintf("%s and %s", sign, count(more, "more rule")))
		}
	}
	list("✗ lacks", r.Missing)
	list("✗ lacks in the whole cluster", r.MissingCluster)
	list("+", r.Added)
	list("+ in the whole cluster", r.AddedCluster)
	list("-", r.Removed)
	list("- in the whole cluster", r.RemovedCluster)
	for _, reason := range r.Unknown {
		out = append(out, "? not known: "+text.Plain(reason, maxWhy))
	}
	return append(out, r.needs()...)
}

// needs is the line that says how many rules the plans need; none if they need none, or if that is not known.
func (r *Rights) needs() []string {
	wide, all := len(r.NeededCluster), len(r.Needed)+len(r.NeededCluster)
	switch {
	case all == 0:
		return nil
	case wide == 0:
		return []string{fmt.Sprintf("needs %s (-o yaml lists them)", count(all, "rule"))}
	}
	return []string{fmt.Sprintf("needs %s, %d of them in the whole cluster (-o yaml lists them)", count(all, "rule"), wide)}
}

// summary is the part of the last line about rights; empty if nothing about them changes or is missing.
func (r *Rights) summary() string {
	if r == nil {
		return ""
	}
	var parts []string
	for _, part := range []struct {
		format string
		rules  [][]rbacv1.PolicyRule
	}{{"+%d", [][]rbacv1.PolicyRule{r.Added, r.AddedCluster}}, {"-%d", [][]rbacv1.PolicyRule{r.Removed, r.RemovedCluster}},
		{"%d missing", [][]rbacv1.PolicyRule{r.Missing, r.MissingCluster}}} {
		if n := rights.CountVerbs(slices.Concat(part.rules...)); n > 0 {
			parts = append(parts, fmt.Sprintf(part.format, n))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; rights " + strings.Join(parts, ", ")
}
