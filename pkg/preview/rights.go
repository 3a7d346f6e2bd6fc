package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/pkg/text"
)

// maxRules is how many rules of a sort a text shows.
const maxRules = 10

// Rights are those that all plans of an Instance need after an edit, whether or not the edit runs them.
type Rights struct {
	// Account is the ServiceAccount with whose rights the plans read and write, as NAMESPACE/NAME.
	Account string `json:"account"`
	// Given is set if the command itself gives the account what it lacks.
	Given bool `json:"given,omitempty"`
	// Missing are the rules that the account lacks, and MissingCluster those for the whole cluster.
	Missing        []rbacv1.PolicyRule `json:"missing,omitempty"`
	MissingCluster []rbacv1.PolicyRule `json:"missingCluster,omitempty"`
	// Added are the rules that the plans need and did not need before the edit, and Removed the converse. A creation adds all.
	Added   []rbacv1.PolicyRule `json:"added,omitempty"`
	Removed []rbacv1.PolicyRule `json:"removed,omitempty"`
	// Unknown says what is not known of it.
	Unknown []string `json:"unknown,omitempty"`
}

// compareRights fills in which rights the plans need, which of them the account lacks, and how they differ from before the edit.
func (c *computation) compareRights(ctx context.Context) {
	i := c.edit.After
	out := &Rights{Given: c.edit.GivesRights}
	after, err := c.neededRights(ctx, i, c.edit.Version, c.given)
	if err != nil {
		out.Unknown = append(out.Unknown, c.mask.Text(err.Error()))
		c.out.Rights = out
		return
	}
	out.Unknown = append(out.Unknown, after.Notes...)
	before := &rights.Rights{}
	if c.edit.Before != nil {
		version := c.edit.Old
		if version == nil {
			version = c.edit.Version
		}
		if before, err = c.neededRights(ctx, c.edit.Before, version, c.before); err != nil {
			out.Unknown = append(out.Unknown, c.mask.Text("which rights the plans have needed: "+err.Error()))
			before = after
		}
	}
	out.Added = append(rights.Without(after.Rules, before.Rules), rights.Without(after.ClusterRules, before.ClusterRules)...)
	out.Removed = append(rights.Without(before.Rules, after.Rules), rights.Without(before.ClusterRules, after.ClusterRules)...)
	account, known := c.account(i)
	if out.Account = account.String(); !known {
		out.Unknown = append(out.Unknown, "with whose rights the plans run: you may not read the settings of kudo")
	}
	if known && !out.Given {
		if out.Missing, err = rights.Missing(ctx, c.Client, account, i.Namespace, after.Rules); err == nil {
			out.MissingCluster, err = rights.Missing(ctx, c.Client, account, "", after.ClusterRules)
		}
		if err != nil {
			out.Unknown = append(out.Unknown, c.mask.Text(err.Error()))
		}
	}
	c.out.Rights = out
}

// account is the one with whose rights the plans of an Instance run, and whether it is known.
func (o Options) account(i *v1beta1.Instance) (types.NamespacedName, bool) {
	if i.Spec.ServiceAccountName != "" {
		return types.NamespacedName{Namespace: i.Namespace, Name: i.Spec.ServiceAccountName}, true
	}
	return o.DefaultAccount, o.DefaultAccount.Name != ""
}

// runAccount returns with whose rights a run of an Instance would read and write, and whether these are the rights of kudo. If the settings are
// not known, they are those of its last run, and else counted as those of kudo.
func (o Options) runAccount(i *v1beta1.Instance) (account apply.Account, privileged bool) {
	by, known := o.account(i)
	if last := i.Status.Baseline; !known && last != nil {
		by.Namespace, by.Name, known = strings.Cut(last.RunAs, "/")
	}
	own := by.Namespace != i.Namespace || by.Name == settings.InstallerAccount
	return apply.Account(by), !known || own && i.Spec.ServiceAccountName == ""
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
		Written: i.Status.Resources,
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
	return r == nil || len(r.Missing)+len(r.MissingCluster)+len(r.Added)+len(r.Unknown) == 0
}

// isEmpty reports whether there is nothing to say.
func (r *Rights) isEmpty() bool {
	return r == nil || len(r.Missing)+len(r.MissingCluster)+len(r.Added)+len(r.Removed)+len(r.Unknown) == 0
}

// lines are the rights for people: one for each rule that is missing, or is needed newly or no longer.
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
	list("-", r.Removed)
	for _, reason := range r.Unknown {
		out = append(out, "? not known: "+text.Plain(reason, maxWhy))
	}
	return out
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
	}{{"+%d", [][]rbacv1.PolicyRule{r.Added}}, {"-%d", [][]rbacv1.PolicyRule{r.Removed}}, {"%d missing",
		[][]rbacv1.PolicyRule{r.Missing, r.MissingCluster}}} {
		if n := rights.CountVerbs(slices.Concat(part.rules...)); n > 0 {
			parts = append(parts, fmt.Sprintf(part.format, n))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; rights " + strings.Join(parts, ", ")
}
