/// An error of a store that tells a failed change from one whose outcome is unknown.
package protocol StoreOutcomeError: Error {
    /// Whether the change happened, or will, or will not.
    var isUnknown: Bool { get }
}
