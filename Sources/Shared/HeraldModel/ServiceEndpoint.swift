/// An address at which devices find a service.
public struct ServiceEndpoint: Codable, Hashable, Sendable {
    /// A name, or an address without brackets.
    public var host: String
    /// The listener for devices.
    public var port: Int
    /// The activation listener, which also renews certificates.
    public var activation: Int

    /// Creates an address.
    public init(host: String, port: Int, activation: Int) {
        self.host = host
        self.port = port
        self.activation = activation
    }
}
