/// A failure of the test's own service or device: it could not start, or something did not come in time.
public struct HeraldTestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// An explanation for people.
    public let description: String

    /// Whether something did not come in time.
    let isTimeout: Bool

    init(_ description: String, isTimeout: Bool = false) {
        self.description = description
        self.isTimeout = isTimeout
    }
}
