/// The service's number for the name of a provider's credential.
package struct SenderNumber: Hashable, Sendable {
    /// No name: the credential is unknown, or there are too many.
    package static let unknown = SenderNumber(0)

    package let value: UInt16

    package init(_ value: UInt16) {
        self.value = value
    }
}
