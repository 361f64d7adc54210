/// A failure of the test's own service or device: it could not start, or something did not come in time.
public struct HeraldTestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// An explanation for people.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
