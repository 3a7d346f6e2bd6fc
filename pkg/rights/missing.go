package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxReviews is how many questions about an account the API server is asked.
	maxReviews = 300
	// reviewers is how many are asked at a time.
	reviewers = 8
)

// errTooMany is the error of rules that would need more than maxReviews questions.
var errTooMany = errors.New("the plans need more rights than the API server is asked about: see kubectl kudo package rights")

// AccountMay reports whether a ServiceAccount may do a request. In a namespace, the user of the client needs the right to create
// localsubjectaccessreviews, which administrators of the namespace have; for the whole cluster, subjectaccessreviews.
func AccountMay(ctx context.Context, c client.Client, account types.NamespacedName,
	request authorizationv1.ResourceAttributes) (bool, error) {
	return askReview(ctx, c, account, request.Namespace, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &request})
}

// askReview asks whether an account may do what a spec says; the spec needs no user.
func askReview(ctx context.Context, c client.Client, account types.NamespacedName, namespace string,
	spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	spec.User = serviceaccount.MakeUsername(account.Namespace, account.Name)
	spec.Groups = append(serviceaccount.MakeGroupNames(account.Namespace), "system:authenticated")
	if namespace == "" {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		err := c.Create(ctx, review)
		return review.Status.Allowed, err
	}
	review := &authorizationv1.LocalSubjectAccessReview{Spec: spec}
	review.Namespace = namespace
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}

// Missing returns what rules allow and an account may not do, sorted: in a namespace, or in the whole cluster if that is empty. Nothing is
// asked about objects by name if the account may do the same with all objects. The error says why that is not known.
func Missing(ctx context.Context, c client.Client, account types.NamespacedName, namespace string,
	rules []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	needed := newGrants()
	needed.rules(rules)
	names := map[grant][]string{}
	for _, one := range needed.needed() {
		of := grant{group: one.group, resource: one.resource, verb: one.verb}
		names[of] = append(names[of], one.name)
	}
	q := &questions{client: c, account: account, namespace: namespace, left: maxReviews, missing: newGrants()}
	var all []func(context.Context) error
	for _, of := range slices.SortedFunc(maps.Keys(names), compareGrants) {
		all = append(all, func(ctx context.Context) error { return q.ask(ctx, of, names[of]) })
	}
	for _, rule := range needed.pathRules() {
		all = append(all, func(ctx context.Context) error { return q.askPath(ctx, rule) })
	}
	if err := askAll(ctx, all); err != nil {
		return nil, err
	}
	return q.missing.list(), nil
}

// askAll asks questions side by side, but for the first: a user who may not ask gets the same error each time.
func askAll(ctx context.Context, all []func(context.Context) error) error {
	if len(all) == 0 {
		return nil
	}
	if err := all[0](ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewers)
	for _, ask := range all[1:] {
		group.Go(func() error { return ask(ctx) })
	}
	return group.Wait()
}

// compareGrants orders grants by what they are about.
func compareGrants(a, b grant) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), compareVerbs(a.verb, b.verb),
		cmp.Compare(a.name, b.name))
}

// questions are those about one account.
type questions struct {
	client    client.Client
	account   types.NamespacedName
	namespace string

	mu      sync.Mutex
	left    int
	missing *grants
}

// ask notes which objects of a resource the account may not do a verb with. An empty name stands for all objects.
func (q *questions) ask(ctx context.Context, of grant, names []string) error {
	allowed, err := q.allowed(ctx, of)
	if err != nil || allowed {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		of.name = name
		if name != "" {
			if allowed, err = q.allowed(ctx, of); err != nil {
				return err
			}
		}
		if !allowed {
			q.mu.Lock()
			q.missing.resources[of] = true
			q.mu.Unlock()
		}
	}
	return nil
}

func (q *questions) allowed(ctx context.Context, g grant) (bool, error) {
	if err := q.take(); err != nil {
		return false, err
	}
	request := authorizationv1.ResourceAttributes{Namespace: q.namespace, Verb: g.verb, Group: g.group, Name: g.name}
	request.Resource, request.Subresource, _ = strings.Cut(g.resource, "/")
	allowed, err := AccountMay(ctx, q.client, q.account, request)
	if err != nil {
		return false, fmt.Errorf("ask whether ServiceAccount %s may %s %s: %w", q.account, g.verb, ResourceName(g.group, g.resource), err)
	}
	return allowed, nil
}

// askPath notes which verbs on a path the account may not use.
func (q *questions) askPath(ctx context.Context, rule rbacv1.PolicyRule) error {
	for _, verb := range rule.Verbs {
		if err := q.take(); err != nil {
			return err
		}
		request := authorizationv1.NonResourceAttributes{Path: rule.NonResourceURLs[0], Verb: verb}
		allowed, err := askReview(ctx, q.client, q.account, "", authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &request})
		if err != nil {
			return fmt.Errorf("ask whether ServiceAccount %s may %s the path %s: %w", q.account, verb, request.Path, err)
		}
		if !allowed {
			q.mu.Lock()
			q.missing.paths = append(q.missing.paths, rbacv1.PolicyRule{NonResourceURLs: rule.NonResourceURLs, Verbs: []string{verb}})
			q.mu.Unlock()
		}
	}
	return nil
}

// take counts a question.
func (q *questions) take() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left == 0 {
		return errTooMany
	}
	q.left--
	return nil
}

// CountVerbs is how many pairs of a verb and a resource, or an object of one, rules allow.
func CountVerbs(rules []rbacv1.PolicyRule) int {
	n := 0
	for _, rule := range rules {
		places := len(rule.NonResourceURLs) + len(rule.APIGroups)*len(rule.Resources)*cmp.Or(len(rule.ResourceNames), 1)
		n += places * len(rule.Verbs)
	}
	return n
}

// Describe is a rule in one line for people, such as `deployments.apps: get, patch (web)`.
func Describe(rule rbacv1.PolicyRule) string {
	places := slices.Clone(rule.NonResourceURLs)
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			places = append(places, ResourceName(group, resource))
		}
	}
	out := strings.Join(places, ", ") + ": " + strings.Join(rule.Verbs, ", ")
	if len(rule.ResourceNames) > 0 {
		out += " (" + strings.Join(rule.ResourceNames, ", ") + ")"
	}
	return out
}
