/// A connection that the gateway cannot serve.
package struct GatewayError: Error, Sendable, CustomStringConvertible {
    /// One line: the problem, and what to do.
    package let message: String

    static let noMemory = GatewayError(
        message: "no memory for another provider connection; allow fewer connections, or give the service more memory"
    )

    static let foreignLoop = GatewayError(
        message: "a connection arrived on an event loop of another group; this is an error in Herald, please report it"
    )

    package var description: String { message }
}
