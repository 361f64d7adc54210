/// Bytes that are no MQTT packet, or a packet that cannot be written.
///
/// Carries the reason code with which MQTT 5 tells the peer (§4.13); equality is the code.
package struct MQTTError: Error, Sendable {
    package let code: MQTTReasonCode
    /// What is wrong, for people; holds nothing that the peer sent.
    package let message: String

    package init(_ code: MQTTReasonCode, _ message: String) {
        self.code = code
        self.message = message
    }

    static func malformed(_ message: String) -> MQTTError {
        MQTTError(.malformedPacket, message)
    }

    static func protocolError(_ message: String) -> MQTTError {
        MQTTError(.protocolError, message)
    }
}

extension MQTTError: Equatable {
    package static func == (left: MQTTError, right: MQTTError) -> Bool {
        left.code == right.code
    }
}

extension MQTTError: CustomStringConvertible {
    package var description: String { message }
}
