package instance

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/trust"
)

// packageRefused says why PackagePolicies refuse the OperatorVersion that spec names, or that it has not the content that the Instance
// wants; it returns nil if neither is so. Only what a run starts with has to have this content: a run of an earlier content ends, so that
// one of the wanted content can start.
func (s *scope) packageRefused(ctx context.Context) (*blocked, error) {
	message, err := s.judge(ctx, trust.Request{Version: s.version, Identity: identity(s.version),
		Content: s.Next.Annotations[v1beta1.VersionContentAnnotation]})
	if message == "" {
		return nil, err
	}
	return &blocked{packageRefused, v1beta1.ReasonPackageNotVerified, v1beta1.EventPackageNotVerified, message}, err
}

// contentRefused says why PackagePolicies refuse the content of an OperatorVersion of this name, which may be one that was kept of it;
// empty if they do not. A live OperatorVersion of the name may have got signatures since.
func (s *scope) contentRefused(ctx context.Context, name types.NamespacedName, content *runner.ParsedVersion) (string, error) {
	version := &v1beta1.OperatorVersion{Spec: *content.Spec}
	version.Namespace, version.Name = name.Namespace, name.Name
	request := trust.Request{Version: version, Identity: name.String() + "/" + content.Hash}
	if live := s.version; live != nil && live.Namespace == name.Namespace && live.Name == name.Name && live.Spec.Provenance != nil {
		request.Signatures, request.Manifest = live.Spec.Provenance.Signatures, live.Spec.Provenance.Manifest
	}
	return s.judge(ctx, request)
}

// identity differs for each OperatorVersion and each of its contents.
func identity(version *v1beta1.OperatorVersion) string {
	return fmt.Sprintf("%s/%d", version.UID, version.Generation)
}

// judge returns why a package may not run in the namespace of the Instance; empty if it may.
func (s *scope) judge(ctx context.Context, request trust.Request) (string, error) {
	request.Caller, request.Namespace = metrics.CallerInstance, s.Next.Namespace
	if tarball := s.Next.Spec.CRDTarball; tarball != nil {
		name := fmt.Sprintf("spec.crdTarball of Instance %s/%s", s.Next.Namespace, s.Next.Name)
		request.Tarball = &trust.Tarball{Name: name, Digest: tarball.Digest(), Signatures: s.Next.Spec.CRDTarballSignatures}
		if field := tarball.MissingDigest(); field != "" {
			request.UnpinnedTarball = fmt.Sprintf("%s names a tarball that the signatures of the package do not cover: set %s and "+
				"spec.crdTarballSignatures, or remove it", name, field)
		}
	} else if request.Version.Spec.InstallPlan != "" && request.Version.Spec.CRDTarball == nil && s.Settings(ctx).DefaultCRDURL != "" {
		request.UnpinnedTarball = "the CustomResourceDefinitions come from default-crd-url-template of kudo-config, and no signature covers " +
			"them: the package names a crdTarball with a sha256, or an administrator removes the setting"
	}
	verdict, err := s.Judge(ctx, request)
	if err != nil || verdict.Allowed {
		return "", err
	}
	return verdict.Message, nil
}

// errRunHeld ends the execution of a run whose content PackagePolicies refuse meanwhile.
var errRunHeld = errors.New("PackagePolicies refuse the package")

// isRunHeld reports whether PackagePolicies refuse the content of the run. Nothing is written for it then, and it
// continues when they allow it.
func (e *execution) isRunHeld(ctx context.Context, name string, st v1beta1.PlanStatus) (bool, error) {
	refusal, err := e.contentRefused(ctx, key(e.run.Source), e.run.Version)
	if err != nil || refusal == "" {
		return false, err
	}
	e.runRefusal = refusal
	st.Message = refusal
	e.setPlanStatus(name, st)
	e.warnInRun(v1beta1.EventPackageNotVerified, refusal)
	e.result.RequeueAfter = loop.RecheckInterval // no watch shows that the labels of the namespace change
	return true, nil
}
