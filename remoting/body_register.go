package remoting

// RegisterBrokerBody is the body of REGISTER_BROKER.
type RegisterBrokerBody struct {
	FilterServerList []string                   `json:"filterServerList"`
	Topics           TopicConfigAndMappingTable `json:"topicConfigSerializeWrapper"`
}

// MaxRegisterBody bounds the inflated form of a compressed registration in
// bytes.
const MaxRegisterBody = 256 << 20

// EncodeRegisterBroker writes a registration as JSON, or in the compressed
// form. version is that of the sender: below V5_0_0 the compressed form has no
// mapping section.
func EncodeRegisterBroker(b *RegisterBrokerBody, compressed bool, version int32) ([]byte, error) {
	panic("not yet")
}

// DecodeRegisterBroker reads a registration. compressed is the request's
// header field, version the sender's version.
func DecodeRegisterBroker(body []byte, compressed bool, version int32) (*RegisterBrokerBody, error) {
	panic("not yet")
}
