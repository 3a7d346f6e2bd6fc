package packages

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/explore/live"
	"kudo.dev/kudo/pkg/trust"
)

// maxPolicies bounds the file of policies, in bytes.
const maxPolicies = 1 << 20

// policyVerdict is the verdict of policies on a package, as -o prints it.
type policyVerdict struct {
	Package string `json:"package"`
	Content string `json:"content"`
	Allowed bool   `json:"allowed"`
	Verdict string `json:"verdict"`
	Message string `json:"message,omitempty"`
}

// verifyPolicies prints the verdicts of policies on a package, or on the OperatorVersions of the cluster if no package is named. The error
// has ExitFailed if one is refused.
func (o *verifyOptions) verifyPolicies(ctx context.Context, name string) error {
	var verdicts []policyVerdict
	var err error
	if o.inCluster {
		verdicts, err = o.judgeInstalled(ctx, name)
	} else {
		verdicts, err = o.judgeFile(ctx, name)
	}
	if err != nil {
		return err
	}
	var refused []string
	table := [][]string{{"PACKAGE", "VERDICT", "MESSAGE"}}
	for _, v := range verdicts {
		table = append(table, []string{v.Package, v.Verdict, v.Message})
		if !v.Allowed {
			refused = append(refused, v.Package)
		}
	}
	if o.output != "" {
		err = o.env.PrintValue(o.output, map[string]any{"verdicts": verdicts})
	} else {
		err = o.env.PrintTable(table)
	}
	switch {
	case err != nil:
		return err
	case len(refused) > 0:
		return command.WithCode(command.ExitFailed, fmt.Errorf("policies refuse %d of %d packages", len(refused), len(verdicts)))
	}
	return nil
}

// judgeFile judges an archive or a package in a registry. The namespace in which it is going to run is not known, so that each policy
// counts for all namespaces.
func (o *verifyOptions) judgeFile(ctx context.Context, name string) ([]policyVerdict, error) {
	objects, err := readPolicies(o.policy)
	if err != nil {
		return nil, err
	}
	found, err := o.findSigned(ctx, name, func([]byte, trust.Package) bool { return false }) // a policy can require several
	if err != nil {
		return nil, err
	}
	c := trust.Candidate{Package: found.pkg, Manifest: found.pkg.Digests[trust.SubjectManifest], UnpinnedTarball: found.unpinned,
		Anywhere: true}
	for _, b := range found.bundles {
		c.Signatures = append(c.Signatures, string(b))
	}
	verdict := judge(found.name, c, trust.ParsePolicies(objects), o.env.Now())
	if found.incomplete != nil && verdict.Verdict != string(trust.Verified) {
		return nil, fmt.Errorf("not all signatures of %s were read, and the verdict without them is %s: %w", found.name, verdict.Verdict,
			found.incomplete)
	}
	found.warnOfIncomplete(o.env)
	return []policyVerdict{verdict}, nil
}

// judgeInstalled judges the OperatorVersion of a name, or all, each by the labels of its namespace. Without a file, the policies are those
// of the cluster.
func (o *verifyOptions) judgeInstalled(ctx context.Context, name string) ([]policyVerdict, error) {
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return nil, err
	}
	var objects []configv1alpha1.PackagePolicy
	if o.policy != "" {
		objects, err = readPolicies(o.policy)
	} else {
		objects, err = live.List[configv1alpha1.PackagePolicy](ctx, c, "PackagePolicy")
	}
	if err != nil {
		return nil, err
	}
	all, err := o.listVersions(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	versions := slices.DeleteFunc(slices.Clone(all), func(ov v1beta1.OperatorVersion) bool { return name != "" && ov.Name != name })
	if name != "" && len(versions) == 0 {
		return nil, fmt.Errorf("operatorversion %s/%s does not exist: kubectl get operatorversions -n %[1]s lists those that do", namespace, name)
	}
	verdicts, known, policies := []policyVerdict{}, map[string]labels.Set{}, trust.ParsePolicies(objects)
	for i := range versions {
		ov := &versions[i]
		if _, read := known[ov.Namespace]; !read {
			of := &corev1.Namespace{}
			if err := c.Get(ctx, types.NamespacedName{Name: ov.Namespace}, of); err != nil {
				return nil, fmt.Errorf("read Namespace %s, by whose labels policies select: %w", ov.Namespace, err)
			}
			known[ov.Namespace] = of.Labels
		}
		candidate, err := trust.NewCandidate(ov, known[ov.Namespace])
		if err != nil {
			return nil, err
		}
		candidate.AddParents(ov.Namespace, all)
		verdicts = append(verdicts, judge(ov.Namespace+"/"+ov.Name, candidate, policies, o.env.Now()))
	}
	return verdicts, nil
}

// listVersions returns the OperatorVersions of the namespace, or of all namespaces.
func (o *verifyOptions) listVersions(ctx context.Context, c client.Client, namespace string) ([]v1beta1.OperatorVersion, error) {
	list := &v1beta1.OperatorVersionList{}
	var options []client.ListOption
	if !o.allNamespaces {
		options = append(options, client.InNamespace(namespace))
	}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list OperatorVersions: %w", err)
	}
	return list.Items, nil
}

func judge(name string, c trust.Candidate, policies []trust.Policy, now time.Time) policyVerdict {
	v := trust.Judge(policies, c, false, now)
	return policyVerdict{Package: name, Content: c.Package.Content, Allowed: v.Allowed, Verdict: string(v.Reason), Message: v.Message}
}

// readPolicies reads a file of PackagePolicies. A field that is not known is an error, since it could narrow what the policy allows.
func readPolicies(file string) ([]configv1alpha1.PackagePolicy, error) {
	data, err := command.ReadBounded(file, maxPolicies)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	out, err := decodePolicies(data)
	if err != nil {
		return nil, fmt.Errorf("--policy: %s: %w", file, err)
	}
	return out, nil
}

func decodePolicies(data []byte) ([]configv1alpha1.PackagePolicy, error) {
	var out []configv1alpha1.PackagePolicy
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		var p configv1alpha1.PackagePolicy
		if err := yaml.UnmarshalStrict(document, &p); err != nil {
			return nil, err
		}
		if p.APIVersion != configv1alpha1.GroupVersion.String() || p.Kind != "PackagePolicy" || p.Name == "" {
			return nil, fmt.Errorf("there is a %q of %q, called %q: the file must hold PackagePolicies of %s, each with a name", p.Kind,
				p.APIVersion, p.Name, configv1alpha1.GroupVersion)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, errors.New("it holds no PackagePolicy")
	}
	return out, nil
}
