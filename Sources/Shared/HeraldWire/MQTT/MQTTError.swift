import HeraldModel

/// Bytes that are not an MQTT packet, or a packet that cannot be written.
///
/// Carries the reason code for the peer (MQTT 5 §4.13). Errors with the same code are equal.
package struct MQTTError: CodedError {
    package let code: MQTTReasonCode
    /// The fault, for people; holds nothing that the peer sent.
    package let message: String

    package init(_ code: MQTTReasonCode, _ message: String) {
        self.code = code
        self.message = message
    }

    /// A string to be written has a character for which a receiver may refuse the packet (MQTT 5 §1.5.4).
    package static let forbiddenCharacter = MQTTError(.malformedPacket, "a string has a forbidden character")

    static func malformed(_ message: String) -> MQTTError {
        MQTTError(.malformedPacket, message)
    }

    static func protocolError(_ message: String) -> MQTTError {
        MQTTError(.protocolError, message)
    }
}
