package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/trust"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sigstore"
)

// newSigner makes a key that signs packages.
func newSigner() *trust.Signer {
	t := GinkgoTB()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	env.Must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	env.Must(t, err)
	signer, err := trust.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil)
	env.Must(t, err)
	return signer
}

// signVersion puts a signature of what an OperatorVersion has into it.
func signVersion(ov *v1beta1.OperatorVersion, by *trust.Signer) {
	t := GinkgoTB()
	p, err := trust.PackageOf(ov)
	env.Must(t, err)
	bundle, err := trust.Sign(context.Background(), p, by)
	env.Must(t, err)
	ov.Spec.Provenance = &v1beta1.Provenance{Signatures: []string{string(bundle)}}
}

// requirePolicy creates a policy that requires a signature of the key for the packages of an operator. It goes with the spec.
func requirePolicy(operator string, by *trust.Signer, changes ...func(*configv1alpha1.PackagePolicySpec)) *configv1alpha1.PackagePolicy {
	t := GinkgoTB()
	p := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: operator}}
	p.Spec.Action, p.Spec.Match.Operators = configv1alpha1.RequireSignatures, []string{operator}
	p.Spec.Authorities = []configv1alpha1.PolicyAuthority{{Name: "release", Key: &configv1alpha1.AuthorityKey{PublicKey: string(by.Public.PEM())}}}
	for _, change := range changes {
		change(&p.Spec)
	}
	env.Must(t, cluster.Create(context.Background(), p))
	t.Cleanup(func() { env.Must(t, client.IgnoreNotFound(cluster.Delete(context.Background(), p))) })
	return p
}

// editPolicy changes a policy.
func editPolicy(p *configv1alpha1.PackagePolicy, change func(*configv1alpha1.PackagePolicySpec)) {
	t := GinkgoTB()
	get(t, p, "", p.Name)
	patch := client.MergeFrom(p.DeepCopy())
	change(&p.Spec)
	env.Must(t, cluster.Patch(context.Background(), p, patch))
}

// named gives an OperatorVersion the operator of a policy, so that no other package is judged by it.
func named(operator string) gen.VersionMod {
	return func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Operator.Name = operator
		gen.Param("VALUE", "a", "")(ov)
	}
}

// refused waits until policies refuse an Instance, with these texts.
func refused(ns string, texts ...string) *v1beta1.Instance {
	t := GinkgoTB()
	return await(t, ns, "i", unready(v1beta1.ReasonPackageNotVerified, texts...))
}

// isVerified waits for the condition Verified of an OperatorVersion.
func isVerified(ov *v1beta1.OperatorVersion, reason trust.Reason) {
	t := GinkgoTB()
	env.Eventually(t, "Verified of "+ov.Name+": "+string(reason), func() string {
		now := get(t, &v1beta1.OperatorVersion{}, ov.Namespace, ov.Name)
		c := meta.FindStatusCondition(now.Status.Conditions, v1beta1.VerifiedCondition)
		switch {
		case c == nil && reason == "", c != nil && c.Reason == string(reason):
			return ""
		case c == nil:
			return "there is no condition"
		}
		return c.Reason + ": " + c.Message
	})
}

// applied reports whether the ConfigMap exists that the packages here apply.
func applied(ns, name string) bool {
	err := cluster.Get(context.Background(), client.ObjectKey{Namespace: ns, Name: name}, &corev1.ConfigMap{})
	env.Must(GinkgoTB(), client.IgnoreNotFound(err))
	return err == nil
}

// deleteAll deletes all objects of kinds, one kind after the other, and waits until they do not exist.
func deleteAll(lists ...client.ObjectList) {
	t := GinkgoTB()
	for _, list := range lists {
		env.Eventually(t, "the end of all objects of a kind", func() string {
			env.Must(t, cluster.List(context.Background(), list))
			left := items(t, list)
			for _, o := range left {
				if o.GetDeletionTimestamp() == nil {
					env.Must(t, client.IgnoreNotFound(cluster.Delete(context.Background(), o)))
				}
			}
			if len(left) > 0 {
				return left[0].GetNamespace() + "/" + left[0].GetName() + " exists"
			}
			return ""
		})
	}
}

// Policies give each OperatorVersion a condition, so that no other spec runs meanwhile.
var _ = Describe("PackagePolicies", Serial, Label("package-policies", "S23"), func() {
	// Without their policies, Instances that were refused would start, and other specs count the requests of the manager.
	AfterEach(func() { deleteAll(&v1beta1.InstanceList{}, &v1beta1.OperatorVersionList{}) })

	It("let a tarball of CRDs that an Instance names be used once the authority has signed it (S34)", func() {
		t := GinkgoTB()
		ns, key := cluster.NewNamespace(t), newSigner()
		requirePolicy("own-crds", key)
		ov := gen.Version(ns, "own-crds-1", named("own-crds"), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
		signVersion(ov, key)
		env.Must(t, cluster.Create(t.Context(), ov))
		i := gen.Instance("i", ov, nil)
		hash := strings.Repeat("0", 64)
		i.Spec.CRDTarball = &v1beta1.CRDTarball{ConfigMapSource: &v1beta1.ConfigMapSource{ConfigMaps: []v1beta1.ConfigMapPart{{Name: "missing"}}, SHA256: hash}}
		env.Must(t, cluster.Create(t.Context(), i))
		refused(ns, "spec.crdTarball of Instance "+ns+"/i, sha256:"+hash, "spec.crdTarballSignatures")
		bundle, err := trust.SignTarball(t.Context(), "sha256:"+hash, key)
		env.Must(t, err)
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.CRDTarballSignatures = []string{string(bundle)} }))
		waits := await(t, ns, "i", unready(v1beta1.ReasonWaitingForCRDs, "missing"))
		if waits.Status.Baseline != nil {
			t.Errorf("the tarball does not exist, and yet a plan has run: %+v", waits.Status)
		}
	})

	It("let a package run that an identity has signed, and none that another one has (S19)", func() {
		t := GinkgoTB()
		ns, by := cluster.NewNamespace(t), sigstore.New(t)
		const issuer, subject = "https://pipelines.example.org", "https://example.org/kudo/release.yaml@refs/heads/main"
		requirePolicy("pipeline", newSigner(), func(s *configv1alpha1.PackagePolicySpec) {
			s.Authorities = []configv1alpha1.PolicyAuthority{{Name: "ci", Keyless: &configv1alpha1.AuthorityIdentity{Issuer: issuer, Subject: subject, TrustedRoot: by.TrustedRoot(nil)}}}
		})
		both := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "both"}}
		both.Spec.Action = configv1alpha1.RequireSignatures
		both.Spec.Authorities = []configv1alpha1.PolicyAuthority{{Name: "neither"}}
		if err := cluster.Create(t.Context(), both); err == nil || !strings.Contains(err.Error(), "set either key or keyless") {
			t.Errorf("an authority without key and identity: %v", err)
		}
		ov := gen.Version(ns, "pipeline-1", named("pipeline"), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
		p, err := trust.PackageOf(ov)
		env.Must(t, err)
		statement, err := trust.Statement(p)
		env.Must(t, err)
		signedBy := func(who string) []string {
			return []string{string(sigstore.Encode(t, by.Attest(who, issuer, string(statement))))}
		}
		ov.Spec.Provenance = &v1beta1.Provenance{Signatures: signedBy("mallory@example.org")}
		env.Must(t, cluster.Create(t.Context(), ov))
		env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, nil)))
		refused(ns, "the bundle is not signed by "+subject+" of "+issuer, "PackagePolicy pipeline")
		if applied(ns, "i-app-0") {
			t.Error("what another identity has signed has run")
		}
		get(t, ov, ns, ov.Name)
		ov.Spec.Provenance.Signatures = signedBy(subject)
		env.Must(t, cluster.Update(t.Context(), ov))
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
		isVerified(ov, trust.Verified)
	})

	It("let a package run that is signed, and none that was changed by one byte (S24, S26)", func() {
		t := GinkgoTB()
		ns, key := cluster.NewNamespace(t), newSigner()
		requirePolicy("gated", key)
		ov := gen.Version(ns, "gated-1", named("gated"), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
		env.Must(t, cluster.Create(t.Context(), ov))
		env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, nil)))
		i := refused(ns, "gated 0.1.0 is not signed: PackagePolicy gated requires a signature of release")
		if i.Status.AggregatedStatus.Status != v1beta1.Pending || i.Status.Baseline != nil || applied(ns, "i-app-0") {
			t.Errorf("something has run: %+v", i.Status)
		}
		isVerified(ov, trust.NoSignature)
		hasEvent(t, ns, "PackageNotVerified: gated 0.1.0 is not signed")

		By("a signature that is added in the cluster lets it run")
		get(t, ov, ns, ov.Name)
		signVersion(ov, key)
		env.Must(t, cluster.Update(t.Context(), ov))
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
		isVerified(ov, trust.Verified)

		By("one byte of a template that changes")
		changed := gen.Version(ns, "gated-2", named("gated"), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
		signVersion(changed, key)
		for name, text := range changed.Spec.Templates {
			changed.Spec.Templates[name] = text + "#"
		}
		env.Must(t, cluster.Create(t.Context(), changed))
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = changed.Name }))
		refused(ns, "the signature of release is for sha256:", "it was changed after it was signed")
		isVerified(changed, trust.ContentDiffers)

		By("provenance of another OperatorVersion")
		get(t, changed, ns, changed.Name)
		changed.Spec.Provenance = ov.Spec.Provenance.DeepCopy()
		env.Must(t, cluster.Update(t.Context(), changed))
		isVerified(changed, trust.ContentDiffers)
		if after := get(t, &v1beta1.Instance{}, ns, "i"); after.Status.Baseline.Revision != 1 {
			t.Errorf("a refused version has run: %+v", after.Status.Baseline)
		}
	})

	It("warn who writes an OperatorVersion that they refuse, and take it (S26)", Label("admission"), func() {
		t := GinkgoTB()
		ns, key := cluster.NewNamespace(t), newSigner()
		requirePolicy("announced", key)
		ov := gen.Version(ns, "announced-1", named("announced"), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
		var shown warnings
		config := rest.CopyConfig(cluster.Config)
		config.WarningHandler = &shown
		c, err := client.New(config, client.Options{Scheme: cluster.Scheme(), Mapper: cluster.RESTMapper()})
		env.Must(t, err)
		const refusal = "it does not run: announced 0.1.0 is not signed: PackagePolicy announced requires a signature of release"
		env.Eventually(t, "a warning", func() string { // the cache of the manager may not have the policy yet
			env.Must(t, c.Create(t.Context(), ov.DeepCopy(), client.DryRunAll))
			if !strings.Contains(strings.Join(shown.take(), "\n"), refusal) {
				return "there is none"
			}
			return ""
		})
		signVersion(ov, key)
		env.Must(t, c.Create(t.Context(), ov))
		if got := shown.take(); len(got) > 0 {
			t.Errorf("a package that is signed has the warnings %q", got)
		}
		patch := func(text string) {
			env.Must(t, c.Patch(t.Context(), ov, client.RawPatch(types.MergePatchType, []byte(text))))
		}
		patch(`{"metadata":{"labels":{"team":"a"}},"spec":{"provenance":null}}`)
		if got := strings.Join(shown.take(), "\n"); !strings.Contains(got, refusal) {
			t.Errorf("a package that has lost its signatures has the warnings %q", got)
		}
		patch(`{"metadata":{"labels":{"team":"b"}}}`)
		if got := shown.take(); len(got) > 0 {
			t.Errorf("an edit of labels has the warnings %q", got)
		}
	})

	It("hold a run that has not ended, and let it continue when they allow it again (S27, S30)", func() {
		t := GinkgoTB()
		ns, key := cluster.NewNamespace(t), newSigner()
		policy := requirePolicy("held", key)
		ov := gen.Version(ns, "held-1", named("held"), gen.Template("job.yaml", strings.ReplaceAll(slowJob, `"6"`, `"40"`)), gen.Apply("job", "job.yaml"),
			gen.ConfigMaps("last", 1), gen.Serial("deploy", "job", "last"))
		signVersion(ov, key)
		env.Must(t, cluster.Create(t.Context(), ov))
		env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, nil)))
		await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["deploy"].Status == v1beta1.InProgress })
		p, err := trust.PackageOf(ov)
		env.Must(t, err)
		editPolicy(policy, func(s *configv1alpha1.PackagePolicySpec) { s.Revoked = []string{p.Content} })
		i := refused(ns, "which PackagePolicy held revokes")
		if st := i.Status.PlanStatus["deploy"]; st.Status.IsTerminal() || !strings.Contains(st.Message, "revokes") {
			t.Errorf("the run: %s %s", st.Status, st.Message)
		}
		if applied(ns, "i-last-0") {
			t.Error("the run has gone on")
		}
		editPolicy(policy, func(s *configv1alpha1.PackagePolicySpec) { s.Revoked = nil })
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
		if !applied(ns, "i-last-0") {
			t.Error("the run has not gone on")
		}
	})

	It("do not hold up a deletion for ever: the cleanup plan does not run, and the finalizer can be removed (S27)", func() {
		t := GinkgoTB()
		ns, key := cluster.NewNamespace(t), newSigner()
		ov := gen.Version(ns, "doomed-1", named("doomed"), gen.ConfigMaps("app", 1), gen.ConfigMaps("bye", 1), gen.Serial("deploy", "app"), gen.Serial("cleanup", "bye"))
		deploy(t, ov, "i", nil)
		requirePolicy("doomed", key)
		isVerified(ov, trust.NoSignature)
		env.Must(t, cluster.Delete(t.Context(), get(t, &v1beta1.Instance{}, ns, "i")))
		refused(ns, "plan cleanup cannot be started", "is not signed", "remove the finalizer kudo.dev.instance.cleanup")
		if applied(ns, "i-bye-0") {
			t.Error("the cleanup plan has run")
		}
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Finalizers = nil }))
		await(t, ns, "i", gone)
	})

	It("hold install plans, and Instances that wait for them, and are measured", Label("install-plan", "R29"), func() {
		t := GinkgoTB()
		ns, key := cluster.NewNamespace(t), newSigner()
		measured := metricsReader(t, ns)
		policy := requirePolicy("installing", key, func(s *configv1alpha1.PackagePolicySpec) {
			s.Authorities[0].NotAfter = &metav1.Time{Time: time.Now().Add(24 * time.Hour)}
		})
		role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: " + ns + "\n"
		ov := gen.Version(ns, "installing-1", named("installing"), gen.Template("role.yaml", role), gen.Apply("role", "role.yaml"), gen.Serial("install", "role"),
			gen.InstallPlan("install"), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
		env.Must(t, cluster.Create(t.Context(), ov))
		env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, nil)))
		isVerified(ov, trust.NoSignature)
		now := get(t, &v1beta1.OperatorVersion{}, ns, ov.Name)
		if c := meta.FindStatusCondition(now.Status.Conditions, v1beta1.InstalledCondition); c == nil || c.Reason != v1beta1.ReasonPackageNotVerified ||
			len(now.Status.PlanStatus) > 0 || now.Status.Installation != "" {
			t.Errorf("something was installed: %+v", now.Status)
		}
		refused(ns, "is not signed")
		const checks, ends = "kudo_package_verifications_total", `kudo_package_authority_expiry_timestamp_seconds{authority="release",policy="installing"} `
		measured("of what waits", []string{
			`kudo_instances_refused{operator="installing"} 1` + "\n", `kudo_operatorversions_refused{operator="installing"} 1` + "\n",
			`kudo_operatorversions_unverified{reason="NoSignature"} 1` + "\n", `kudo_package_policies{ready="true"} 1` + "\n", ends,
			checks + `{caller="instance",reason="NoSignature",result="refused"} `,
			checks + `{caller="operatorversion",reason="NoSignature",result="refused"} `,
			"kudo_package_verification_duration_seconds_count ",
		}, nil)
		signVersion(now, key)
		env.Must(t, cluster.Update(t.Context(), now))
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
		env.Must(t, cluster.Delete(t.Context(), policy))
		measured("of what runs, without the policy", []string{
			`kudo_instances_refused{operator="installing"} 0` + "\n", `kudo_operatorversions_refused{operator="installing"} 0` + "\n",
			checks + `{caller="instance",reason="Verified",result="accepted"} `,
		}, []string{ends, "kudo_operatorversions_unverified{", `kudo_package_policies{ready="true"} 1`})
	})

	It("count by the namespace of the Instance, not by that of the OperatorVersion (S23)", func() {
		t := GinkgoTB()
		ns, lax, key := cluster.NewNamespace(t), cluster.NewNamespace(t), newSigner()
		requirePolicy("roaming", key, func(s *configv1alpha1.PackagePolicySpec) {
			s.Match.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}}
		})
		ov := gen.Version(lax, "roaming-1", named("roaming"), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
		env.Must(t, cluster.Create(t.Context(), ov))
		isVerified(ov, trust.NoPolicy)
		i := gen.Instance("i", ov, nil)
		i.Namespace, i.Spec.OperatorVersion.Namespace = ns, lax
		env.Must(t, cluster.Create(t.Context(), i))
		refused(ns, "is not signed")
		env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, nil)))
		await(t, lax, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
	})

	It("warn only, if they say so, and go without a trace (S29)", func() {
		t := GinkgoTB()
		ns, key := cluster.NewNamespace(t), newSigner()
		policy := requirePolicy("warned", key, func(s *configv1alpha1.PackagePolicySpec) { s.Action = configv1alpha1.WarnOfSignatures })
		ov := gen.Version(ns, "warned-1", named("warned"), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
		deploy(t, ov, "i", nil)
		isVerified(ov, trust.NoSignature)
		hasEvent(t, ns, "PackagePolicy warned only warns")
		env.Must(t, cluster.Delete(t.Context(), policy))
		isVerified(ov, "")
	})

	It("can be required, so that who deletes them opens nothing (S24)", func() {
		t := GinkgoTB()
		settings := get(t, &corev1.ConfigMap{}, "kudo-system", "kudo-config")
		before := settings.DeepCopy()
		settings.Data["package-policy"] = "required"
		env.Must(t, cluster.Update(t.Context(), settings))
		t.Cleanup(func() {
			env.Must(t, cluster.Patch(context.Background(), settings, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"package-policy":null}}`))))
			env.Eventually(t, "the settings of before", env.Condition(func() bool {
				return len(get(t, &corev1.ConfigMap{}, "kudo-system", "kudo-config").Data) == len(before.Data)
			}))
		})
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "free-1", named("free"), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
		env.Must(t, cluster.Create(t.Context(), ov))
		required := unready(v1beta1.ReasonPackageNotVerified, "no PackagePolicy is for operator free, and kudo-config requires one")
		for n, isRequired := 0, false; !isRequired; n++ { // the manager may hear of the settings after the first Instances
			name := fmt.Sprintf("i%d", n)
			env.Must(t, cluster.Create(t.Context(), gen.Instance(name, ov, nil)))
			isRequired = required(await(t, ns, name, func(i *v1beta1.Instance) bool {
				return required(i) || n < 100 && env.PlanEnded(v1beta1.DeployPlan, 1)(i)
			}))
		}
	})

	It("cannot be written without the verb trust, nor by the accounts of kudo (S25)", func() {
		t := GinkgoTB()
		key := newSigner()
		policy := requirePolicy("guarded", key)
		other := policy.DeepCopy()
		other.ObjectMeta = metav1.ObjectMeta{Name: "other"}
		attempts := func(c client.Client) map[string]error {
			return map[string]error{
				"create": c.Create(t.Context(), other.DeepCopy(), client.DryRunAll),
				"update": c.Patch(t.Context(), policy.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"action":"Allow"}}`)), client.DryRunAll),
				"delete": c.Delete(t.Context(), policy.DeepCopy(), client.DryRunAll),
			}
		}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "policy-writer"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"config.kudo.dev"},
			Resources: []string{"packagepolicies"}, Verbs: []string{"create", "update", "patch", "delete"}}}}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "ada", APIGroup: rbacv1.GroupName}}}
		for _, o := range []client.Object{role, binding} {
			env.Must(t, cluster.Create(t.Context(), o))
			t.Cleanup(func() { env.Must(t, cluster.Delete(context.Background(), o)) })
		}
		as := func(user string, groups ...string) client.Client {
			config := rest.CopyConfig(cluster.Config)
			config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
			c, err := client.New(config, client.Options{Scheme: cluster.Scheme(), Mapper: cluster.RESTMapper()})
			env.Must(t, err)
			return c
		}
		account := "system:serviceaccount:kudo-system:"
		for who, c := range map[string]client.Client{
			"a user without trust": as("ada"), "what install plans write as": as(account + "kudo-installer"),
			"what install plans write as, as administrator": as(account+"kudo-installer", "system:masters"),
			"the manager as administrator":                  as(account+"kudo-manager", "system:masters"),
		} {
			for what, err := range attempts(c) {
				if !apierrors.IsForbidden(err) {
					t.Errorf("%s may %s: %v", who, what, err)
				}
			}
		}
		role.Rules[0].Verbs = append(role.Rules[0].Verbs, "trust")
		env.Must(t, cluster.Update(t.Context(), role))
		env.Eventually(t, "the rights of ada", func() string {
			for what, err := range attempts(as("ada")) {
				if err != nil {
					return what + ": " + err.Error()
				}
			}
			return ""
		})
	})
})
