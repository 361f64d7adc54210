/// What keeps the gateway from serving.
package struct GatewayError: Error, Sendable, CustomStringConvertible {
    package struct Code: Hashable, Sendable {
        private enum Name: Hashable, Sendable {
            case noMemory
            case foreignLoop
        }

        private let name: Name

        package static let noMemory = Code(name: .noMemory)
        package static let foreignLoop = Code(name: .foreignLoop)
    }

    package let code: Code
    /// What is wrong and how to mend it, on one line.
    package let message: String

    static let noMemory = GatewayError(
        code: .noMemory,
        message: "no memory for another provider connection; allow fewer connections, or give the service more memory"
    )

    static let foreignLoop = GatewayError(
        code: .foreignLoop,
        message:
            "a connection came on an event loop that is not the gateway's; this is a fault of Herald, please report it"
    )

    package var description: String { message }
}
