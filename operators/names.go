package operators

// VersionName is the name of the OperatorVersion of a version of an operator: `<operator>-<appVersion>-<operatorVersion>`,
// or `<operator>-<operatorVersion>` if the package has no appVersion.
func VersionName(operator, appVersion, operatorVersion string) string {
	if appVersion == "" {
		return operator + "-" + operatorVersion
	}
	return operator + "-" + appVersion + "-" + operatorVersion
}

// DefaultInstanceName is the name of an Instance whose user gives none.
func DefaultInstanceName(operator string) string { return operator + "-instance" }

// ChildInstanceName is the name of the Instance of a dependency whose task gives none.
func ChildInstanceName(parent, operator string) string { return parent + "-" + operator }
