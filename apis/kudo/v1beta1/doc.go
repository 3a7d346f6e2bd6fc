// Package v1beta1 is the kudo.dev/v1beta1 API: Operator, OperatorVersion and Instance.
// It is compatible with the JSON of KUDO's API of the same name in every field.
//
// +kubebuilder:object:generate=true
// +groupName=kudo.dev
package v1beta1
