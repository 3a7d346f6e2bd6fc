package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PackagePolicy says whose signatures an OperatorVersion needs before its plans run. Of the policies that match, those with the most
// specific name of an operator count, and all of these must be met. Writing one needs the verb `trust` on
// packagepolicies.config.kudo.dev.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=packagepolicies,singular=packagepolicy,shortName=kpp,categories=kudo
// +kubebuilder:printcolumn:name="Operators",type=string,JSONPath=`.spec.match.operators`
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Authorities",type=string,JSONPath=`.spec.authorities[*].name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PackagePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which packages the policy is for, and what they need.
	// +required
	Spec PackagePolicySpec `json:"spec"`
	// Status says whether the policy can be used. kudo writes it.
	// +optional
	Status PackagePolicyStatus `json:"status,omitzero"`
}

// PackagePolicyList is a list of PackagePolicies.
// +kubebuilder:object:root=true
type PackagePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []PackagePolicy `json:"items"`
}

// PolicyAction says what becomes of a package that a PackagePolicy is for.
// +kubebuilder:validation:Enum=Require;Warn;Refuse;Allow
type PolicyAction string

const (
	// RequireSignatures runs nothing of a package that the authorities have not signed.
	RequireSignatures PolicyAction = "Require"
	// WarnOfSignatures runs all, and says what Require would refuse.
	WarnOfSignatures PolicyAction = "Warn"
	// RefusePackages runs nothing, signed or not.
	RefusePackages PolicyAction = "Refuse"
	// AllowPackages asks for no signatures; minimumVersions and revoked hold.
	AllowPackages PolicyAction = "Allow"
)

// PackagePolicySpec says which packages a policy is for, and what they need.
// +kubebuilder:validation:XValidation:rule="!(self.action in ['Require', 'Warn']) || (has(self.authorities) && self.authorities.size() > 0)",message="authorities must name whose signatures count with the actions Require and Warn"
// +kubebuilder:validation:XValidation:rule="!has(self.threshold) || !has(self.authorities) || self.threshold <= self.authorities.size()",message="threshold must be at most the number of authorities"
type PackagePolicySpec struct {
	// Match says which packages the policy is for. If empty, it is for all.
	// +optional
	Match PolicyMatch `json:"match,omitzero"`
	// Action says what becomes of them: `Require` runs nothing without signatures, `Warn` says what Require would refuse, `Refuse` runs
	// nothing at all, `Allow` asks for no signatures.
	// +required
	Action PolicyAction `json:"action"`
	// Threshold is how many of the authorities must have signed. If empty, it is 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Threshold int32 `json:"threshold,omitempty"`
	// Authorities are those whose signatures count.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Authorities []PolicyAuthority `json:"authorities,omitempty"`
	// MinimumVersions are the versions that packages must have, so that an old signed version is not run.
	// +optional
	// +listType=map
	// +listMapKey=operator
	// +kubebuilder:validation:MaxItems=256
	MinimumVersions []MinimumVersion `json:"minimumVersions,omitempty"`
	// Revoked are content digests, as `kubectl kudo package verify` prints them, that are not run whoever has signed them, and digests of
	// manifests: what came in one is not run, and a signature of one does not count. Digests of tarballs that Instances name can be revoked,
	// too.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:Pattern=`^sha256:[0-9a-f]{64}$`
	Revoked []string `json:"revoked,omitempty"`
	// Dependencies says what vouches for a package on which another one depends: `Signed`, signatures of its own, or `Pinned`, also those of
	// an OperatorVersion of its namespace whose lock has the digest of its content. If empty, it is `Signed`.
	// +optional
	Dependencies DependencyTrust `json:"dependencies,omitempty"`
}

// DependencyTrust says what vouches for a package on which another one depends.
// +kubebuilder:validation:Enum=Signed;Pinned
type DependencyTrust string

// The values of DependencyTrust. An empty one is SignedDependencies.
const (
	SignedDependencies DependencyTrust = "Signed"
	PinnedDependencies DependencyTrust = "Pinned"
)

// PolicyMatch selects packages. Both parts must match.
type PolicyMatch struct {
	// Operators are names of operators. One that ends in `*` stands for all that begin with the rest. If empty, all match. Of several
	// policies that match, those with the longest name count.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?|[a-z0-9][-a-z0-9.]*\*|\*)$`
	Operators []string `json:"operators,omitempty"`
	// NamespaceSelector selects by labels the namespaces in which packages run: those of Instances, and for an install plan that of its
	// OperatorVersion. If empty, all match.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// PolicyAuthority is whose signatures count.
// +kubebuilder:validation:XValidation:rule="has(self.key) != has(self.keyless)",message="set either key or keyless"
type PolicyAuthority struct {
	// Name of the authority, which messages use.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// NotAfter is when the authority ends. A signature with a key has no time that can be trusted, so that all signatures of the authority
	// end then; those of `keyless` count if they were made before. If empty, it does not end.
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
	// Key verifies the signatures of the authority.
	// +optional
	Key *AuthorityKey `json:"key,omitempty"`
	// Keyless is who signs with a short-lived certificate, in place of a key.
	// +optional
	Keyless *AuthorityIdentity `json:"keyless,omitempty"`
}

// AuthorityIdentity is who signs with a short-lived certificate. A signature needs the certificate, an entry of a log and a timestamp.
type AuthorityIdentity struct {
	// Issuer is the URL of what has authenticated the subject, such as that of a pipeline. It is compared as it is.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Issuer string `json:"issuer"`
	// Subject is the mail address or the URI in the certificate. It is compared as it is: there are no patterns.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Subject string `json:"subject"`
	// TrustedRoot is the trusted root of Sigstore in JSON that has the certificates of the authority, the log and the timestamp authority.
	// It is never fetched.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	TrustedRoot string `json:"trustedRoot"`
}

// AuthorityKey is a public key.
type AuthorityKey struct {
	// PublicKey in PEM: ECDSA with P-256 or P-384, or Ed25519.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	PublicKey string `json:"publicKey"`
}

// MinimumVersion bounds the versions of an operator.
// +kubebuilder:validation:XValidation:rule="has(self.appVersion) || has(self.operatorVersion)",message="appVersion or operatorVersion must be set"
type MinimumVersion struct {
	// Operator is the name of the operator.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Operator string `json:"operator"`
	// AppVersion is a range of semantic versions that the application's version must be in, such as `>=17.4`.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AppVersion string `json:"appVersion,omitempty"`
	// OperatorVersion is a range of semantic versions that the package's version must be in, such as `>=1.2.0`.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	OperatorVersion string `json:"operatorVersion,omitempty"`
}

// PackagePolicyStatus is what kudo has seen of a PackagePolicy.
type PackagePolicyStatus struct {
	// Conditions of the policy. `Ready` is false if a key, a selector or a range cannot be used; the message names it. All packages that the
	// policy is for are refused meanwhile.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Authorities are those of spec, with the names of their keys.
	// +optional
	// +listType=map
	// +listMapKey=name
	Authorities []AuthorityStatus `json:"authorities,omitempty"`
}

// AuthorityStatus is an authority of a policy that can be used.
type AuthorityStatus struct {
	// Name of the authority.
	// +required
	Name string `json:"name"`
	// KeyHint is the name of its key: the SHA-256 of the key in base64, which `kubectl kudo package verify` prints. It is empty for an
	// authority without a key.
	// +optional
	KeyHint string `json:"keyHint,omitempty"`
	// Expires is when the authority ends.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
}
