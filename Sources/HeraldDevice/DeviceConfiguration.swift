public import HeraldModel

/// Who a device is, where its service is, and how patiently it holds on to it.
public struct DeviceConfiguration: Sendable {
    /// The service's host name; also the name that its certificate must carry, and, with `sandbox` or `development` in
    /// it, the choice of the sandbox.
    public var host: String
    /// The service's device port.
    public var port: Int
    /// A PEM file with the device's certificate, its chain and its private key, as `herald device enroll` writes it.
    public var identityFile: String
    /// A PEM file with the authority of the service's certificate.
    public var authorityFile: String
    /// The apps to register: full topics.
    public var topics: [Topic]
    /// How long a connection may be silent before it is tested.
    ///
    /// 60 s, as the service may ask for less.
    public var keepAlive: Duration = .seconds(60)
    /// How long a connection may take from the first attempt to the service's answer.
    ///
    /// 20 s.
    public var connectTimeout: Duration = .seconds(20)
    /// How long it waits between attempts.
    public var backoff = Backoff()

    /// Makes a configuration with the defaults of everything else.
    public init(host: String, port: Int, identityFile: String, authorityFile: String, topics: [Topic]) {
        self.host = host
        self.port = port
        self.identityFile = identityFile
        self.authorityFile = authorityFile
        self.topics = topics
    }
}
