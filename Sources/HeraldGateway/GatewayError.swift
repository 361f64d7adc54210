/// What keeps the gateway from serving.
package struct GatewayError: Error, Sendable, CustomStringConvertible {
    package struct Code: Hashable, Sendable {
        private enum Name: Hashable, Sendable {
            case noMemory
        }

        private let name: Name

        package static let noMemory = Code(name: .noMemory)
    }

    package let code: Code
    /// What is wrong and how to mend it, on one line.
    package let message: String

    static let noMemory = GatewayError(
        code: .noMemory,
        message: "no memory for another provider connection; allow fewer connections, or give the service more memory"
    )

    package var description: String { message }
}
