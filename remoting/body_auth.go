package remoting

// UserInfo is a user of ACL 2.0.
type UserInfo struct {
	Password   string `json:"password,omitempty"`
	UserStatus string `json:"userStatus,omitempty"` // enable, disable
	UserType   string `json:"userType,omitempty"`   // Super, Normal
	Username   string `json:"username"`
}

// ACLInfo holds the policies of one subject.
type ACLInfo struct {
	Policies []ACLPolicy `json:"policies"`
	Subject  string      `json:"subject"`
}

// ACLPolicy is one list of entries, Custom or Default.
type ACLPolicy struct {
	Entries    []ACLEntry `json:"entries"`
	PolicyType string     `json:"policyType,omitempty"` // Custom when not said
}

// ACLEntry allows or denies actions on a resource.
type ACLEntry struct {
	Actions   []string `json:"actions"`
	Decision  string   `json:"decision"`
	Resource  string   `json:"resource"`
	SourceIPs []string `json:"sourceIps,omitempty"`
}
