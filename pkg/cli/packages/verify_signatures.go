package packages

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/trust"
)

// signed is a package with its signatures, as they were found.
type signed struct {
	// name of the package in messages.
	name    string
	pkg     trust.Package
	bundles [][]byte
	// incomplete says why not all signatures were read; nil if all that count were.
	incomplete error
	// unpinned says which CRD tarball the signatures do not cover; empty if there is none.
	unpinned string
}

// signatureVerdict is the verdict on one signature, as -o prints it.
type signatureVerdict struct {
	Signature int    `json:"signature"`
	Verdict   string `json:"verdict"`
	Message   string `json:"message,omitempty"`
}

// verifySignatures prints the signatures of a package with their verdicts, up to the first that is of the key. The error has ExitFailed if
// none is.
func (o *verifyOptions) verifySignatures(ctx context.Context, name string) error {
	key, err := command.ReadPublicKey("--key", o.key)
	if err != nil {
		return err
	}
	found, err := o.findSigned(ctx, name, func(bundle []byte, pkg trust.Package) bool { return isSigned([][]byte{bundle}, pkg, key) })
	if err != nil {
		return err
	}
	verdicts, verified, err := found.verify(key, o.env.Now())
	if err != nil {
		return err
	}
	if o.output != "" {
		err = o.env.PrintValue(o.output, map[string]any{"package": found.name, "key": key.Hint(), "content": found.pkg.Content,
			"verified": verified, "signatures": verdicts})
	} else if len(verdicts) > 0 {
		table := [][]string{{"SIGNATURE", "VERDICT", "MESSAGE"}}
		for _, v := range verdicts {
			table = append(table, []string{strconv.Itoa(v.Signature), v.Verdict, v.Message})
		}
		err = o.env.PrintTable(table)
	}
	switch {
	case err != nil:
		return err
	case !verified && found.incomplete != nil:
		return fmt.Errorf("no signature of %s that could be read is by key %s: %w", found.name, key.Hint(), found.incomplete)
	case len(verdicts) == 0:
		return command.WithCode(command.ExitFailed, fmt.Errorf("%s is not signed: the publisher adds a signature by kubectl kudo package sign",
			found.name))
	case !verified:
		return command.WithCode(command.ExitFailed, fmt.Errorf("no signature of %s is by key %s", found.name, key.Hint()))
	}
	found.warnOfIncomplete(o.env)
	if o.output == "" {
		o.env.Printf("%s is signed by key %s", found.name, key.Hint())
	}
	return nil
}

// verify returns the verdicts on the signatures up to the first that is of the key, and reports whether there is one: whatever others have
// added behind it changes nothing.
func (s *signed) verify(key *trust.PublicKey, now time.Time) (verdicts []signatureVerdict, verified bool, err error) {
	verdicts = []signatureVerdict{}
	for i, bundle := range s.bundles {
		v := signatureVerdict{Signature: i + 1, Verdict: string(trust.Verified)}
		refused := new(trust.RefusedError)
		switch err := trust.Verify(bundle, s.pkg, trust.Authority{Name: "--key", Key: key}, now); {
		case err == nil:
			verified = true
		case errors.As(err, &refused):
			v.Verdict, v.Message = string(refused.Reason), refused.Message
		default:
			return nil, false, err
		}
		if verdicts = append(verdicts, v); verified {
			break
		}
	}
	return verdicts, verified, nil
}

// findSigned finds a package, what its signatures must name, and the signatures. Those in a registry are read up to the first that is
// enough.
func (o *verifyOptions) findSigned(ctx context.Context, name string, enough func([]byte, trust.Package) bool) (*signed, error) {
	switch {
	case o.inCluster:
		return o.findInstalled(ctx, name)
	case repository.IsReference(name):
		return o.findReference(ctx, name, enough)
	}
	found, err := repository.Resolve(ctx, name, ".")
	if err != nil {
		return nil, err
	}
	if found.Archive == nil {
		return nil, command.UsageError("%s is a folder, which has no signatures: name an archive, a reference, or with --in-cluster an "+
			"OperatorVersion", name)
	}
	out := &signed{name: name, unpinned: trust.UnpinnedTarball(found.Package.Operator.CRDTarball)}
	if out.pkg, _, err = packageOf(found.Package); err != nil {
		return nil, err
	}
	out.pkg.Digests = archiveDigests(found.Archive)
	signatures, err := found.Signatures(ctx)
	warnOfSignatures(o.env, out.name, signatures)
	out.bundles, out.incomplete = signatures.Bundles, err
	return out, nil
}

// findReference finds a package in a registry. It is pulled by its digest, and its signatures are those of this digest.
func (o *verifyOptions) findReference(ctx context.Context, name string, enough func([]byte, trust.Package) bool) (out *signed, err error) {
	r, err := repository.ParseReference(name)
	if err != nil {
		return nil, command.UsageError("%w", err)
	}
	source, err := o.env.RemoteWith(&o.registry)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	pulled, err := source.Pull(ctx, r, repository.Versions{})
	if err != nil {
		return nil, err
	}
	out = &signed{name: pulled.Reference.String(), unpinned: trust.UnpinnedTarball(pulled.Package.Operator.CRDTarball)}
	if out.pkg, _, err = packageOf(pulled.Package); err != nil {
		return nil, err
	}
	out.pkg.Digests = archiveDigests(pulled.Archive)
	out.pkg.Digests[trust.SubjectManifest] = pulled.Descriptor().Digest.String() // one with a time is another than push makes now
	found, err := source.SignaturesUntil(ctx, pulled, func(bundle []byte) bool { return enough(bundle, out.pkg) })
	warnOfSignatures(o.env, out.name, found)
	out.bundles, out.incomplete = found.Bundles, err
	return out, nil
}

// warnOfIncomplete says that a package is verified though not all of its signatures were read.
func (s *signed) warnOfIncomplete(env *command.Env) {
	if s.incomplete != nil {
		env.Warnf("%s: not all signatures were read: %v", s.name, s.incomplete)
	}
}

// warnOfSignatures prints what is left out of the signatures of a package.
func warnOfSignatures(env *command.Env, name string, found repository.Signatures) {
	for _, w := range found.Warnings {
		env.Warnf("%s: %s", name, w)
	}
}

// findInstalled finds an OperatorVersion, with the signatures in its spec.
func (o *verifyOptions) findInstalled(ctx context.Context, name string) (*signed, error) {
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return nil, err
	}
	ov := &v1beta1.OperatorVersion{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, ov); err != nil {
		return nil, fmt.Errorf("read OperatorVersion %s/%s: %w", namespace, name, err)
	}
	out := &signed{name: fmt.Sprintf("operatorversion %s/%s", namespace, name), bundles: signaturesOf(ov)}
	out.pkg, err = trust.PackageOf(ov)
	return out, err
}

// signaturesOf returns the signatures in the spec of an OperatorVersion.
func signaturesOf(ov *v1beta1.OperatorVersion) (out [][]byte) {
	if ov.Spec.Provenance == nil {
		return nil
	}
	for _, s := range ov.Spec.Provenance.Signatures {
		out = append(out, []byte(s))
	}
	return out
}

// isSigned reports whether one of the signatures of a package is that of a key already.
func isSigned(bundles [][]byte, pkg trust.Package, key *trust.PublicKey) bool {
	for _, b := range bundles {
		if trust.Verify(b, pkg, trust.Authority{Key: key}, time.Time{}) == nil {
			return true
		}
	}
	return false
}
