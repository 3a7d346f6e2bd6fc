package instance

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/trust"
)

// packageRefused says why PackagePolicies refuse the OperatorVersion that spec names; it returns nil if they do not.
func (a *action) packageRefused(ctx context.Context) (*blocked, error) {
	message, err := a.judge(ctx, trust.Request{Version: a.version, Identity: identity(a.version)})
	if message == "" {
		return nil, err
	}
	return &blocked{packageRefused, v1beta1.ReasonPackageNotVerified, v1beta1.EventPackageNotVerified, message}, err
}

// contentRefused says why PackagePolicies refuse the content of an OperatorVersion of this name, which may be one that was kept of it;
// empty if they do not. A live OperatorVersion of the name may have got signatures since.
func (a *action) contentRefused(ctx context.Context, name types.NamespacedName, content *runner.ParsedVersion) (string, error) {
	version := &v1beta1.OperatorVersion{Spec: *content.Spec}
	version.Namespace, version.Name = name.Namespace, name.Name
	request := trust.Request{Version: version, Identity: name.String() + "/" + content.Hash}
	if live := a.version; live != nil && live.Namespace == name.Namespace && live.Name == name.Name && live.Spec.Provenance != nil {
		request.Signatures = live.Spec.Provenance.Signatures
	}
	return a.judge(ctx, request)
}

// identity differs for each OperatorVersion and each of its contents.
func identity(version *v1beta1.OperatorVersion) string {
	return fmt.Sprintf("%s/%d", version.UID, version.Generation)
}

// judge returns why a package may not run in the namespace of the Instance; empty if it may.
func (a *action) judge(ctx context.Context, request trust.Request) (string, error) {
	request.Namespace = a.Next.Namespace
	if a.Next.Spec.CRDTarball != nil {
		request.UnpinnedTarball = fmt.Sprintf("spec.crdTarball of Instance %s/%s names a tarball that the signatures of the package do not "+
			"cover: remove it", a.Next.Namespace, a.Next.Name)
	} else if request.Version.Spec.InstallPlan != "" && request.Version.Spec.CRDTarball == nil && a.Settings(ctx).DefaultCRDURL != "" {
		request.UnpinnedTarball = "the CustomResourceDefinitions come from default-crd-url-template of kudo-config, and no signature covers " +
			"them: the package names a crdTarball with a sha256, or an administrator removes the setting"
	}
	verdict, err := a.Judge(ctx, request)
	if err != nil || verdict.Allowed {
		return "", err
	}
	return verdict.Message, nil
}

// errRunHeld ends the execution of a run whose content PackagePolicies refuse meanwhile.
var errRunHeld = errors.New("PackagePolicies refuse the package")

// isRunHeld reports whether PackagePolicies refuse the content of the run. Nothing is written for it then, and it goes on when they allow
// it.
func (a *action) isRunHeld(ctx context.Context, name string, st v1beta1.PlanStatus) (bool, error) {
	refusal, err := a.contentRefused(ctx, key(a.run.Source), a.run.Version)
	if err != nil || refusal == "" {
		return false, err
	}
	a.runRefusal = refusal
	st.Message = refusal
	a.setPlanStatus(name, st)
	a.warnInRun(v1beta1.EventPackageNotVerified, refusal)
	a.result.RequeueAfter = loop.RecheckInterval // no watch shows that the labels of the namespace change
	return true, nil
}
